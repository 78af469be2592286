// Command belfry is the server and its command-line tools: see belfry --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	_ "belfry/cmd/belfry/early/collector" // before other packages
	"belfry/config"
	"belfry/pkg/app/command"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
)

// Exit codes.
const (
	exitDone        = 0
	exitFailed      = 1 // the check found differences, or the work failed
	exitUsage       = 2 // wrong usage or configuration
	exitInterrupted = 130
)

// cli holds the commands and their flags, besides those of operations. Each command has its own file.
type cli struct {
	Init     initCmd     `cmd:"" help:"Write a configuration to begin with."`
	Serve    serveCmd    `cmd:"" help:"Serve HTTP, the bus and the workers from one configuration."`
	Doctor   doctorCmd   `cmd:"" help:"Ask everything at once, and say what is wrong and what to do."`
	Health   healthCmd   `cmd:"" help:"Ask the belfry on this machine whether it is ready."`
	Config   configCmd   `cmd:"" help:"Check a configuration, or print its schema."`
	Import   importCmd   `cmd:"" help:"Load a file of objects into a store over HTTP."`
	OpenAPI  openapiCmd  `cmd:"" name:"openapi" help:"Describe the HTTP routes of a configuration (OpenAPI 3.1)."`
	AsyncAPI asyncapiCmd `cmd:"" name:"asyncapi" help:"Describe events and operations on the bus (AsyncAPI 3)."`
	Version  versionCmd  `cmd:"" help:"Print the version."`

	VersionFlag versionFlag `name:"version" help:"Print the version."`

	kong.Plugins // the commands of operations
}

// lastOwn is the last command of the cli itself.
const lastOwn = "version"

// streams are the inputs and outputs of a command.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func main() {
	// The first signal stops the command gracefully. After that signals have their default effect, so that
	// a second one ends a stop that hangs.
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, release)
	os.Exit(run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, s streams) int {
	return runWith(ctx, command.Operations, args, s)
}

// runWith is run with other operations.
func runWith(ctx context.Context, operations []*command.Untyped, args []string, s streams) int {
	exited, code := false, exitDone
	parser := newParser(grammarOf(args, operations), s, func(n int) { exited, code = true, n },
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(s))
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if exited {
		return code
	}
	if err != nil {
		fmt.Fprintf(s.err, "belfry: %v\n  belfry --help lists the commands, belfry COMMAND --help their flags\n", err)
		return exitUsage
	}
	return report(parsed.Run(), s.err)
}

// newParser knows the commands of a grammar and their flags. exit is called after the help or the version.
func newParser(grammar any, s streams, exit func(int), more ...kong.Option) *kong.Kong {
	parser, err := kong.New(grammar, append(more,
		kong.Name("belfry"),
		kong.Description("A self-hosted backend: JSON objects in stores, maintained copies, and an event for "+
			"each change."),
		kong.Vars{"roles": strings.Join(plan.Roles(), ", ")},
		kong.TypeMapper(reflect.TypeFor[templateName](), templateMapper{}),
		kong.UsageOnError(), kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Writers(s.out, s.err),
		kong.Exit(exit),
	)...)
	if err != nil {
		panic(err) // the declarations of the commands are invalid
	}
	placeOperations(parser.Model.Node)
	return parser
}

// report prints an error and returns its exit code.
func report(err error, w io.Writer) int {
	var problems config.Problems
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, command.ErrFound):
		return exitFailed
	case errors.As(err, &problems):
		fmt.Fprintln(w, problems.Error())
		return exitUsage
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(w, "belfry: interrupted")
		return exitInterrupted
	}
	fmt.Fprintf(w, "belfry: %v\n", err)
	if errors.Is(err, errs.Invalid) {
		return exitUsage
	}
	return exitFailed
}
