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

	"belfry/config"
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

// cli holds the commands and their flags. Each command has its own file.
type cli struct {
	Init     initCmd     `cmd:"" help:"Write a configuration to begin with."`
	Serve    serveCmd    `cmd:"" help:"Serve HTTP, the bus and the workers from one configuration."`
	Reload   reloadCmd   `cmd:"" help:"Have the belfry that serves read its configuration again."`
	Doctor   doctorCmd   `cmd:"" help:"Ask everything at once, and say what is wrong and what to do."`
	Health   healthCmd   `cmd:"" help:"Ask the belfry on this machine whether it is ready."`
	Config   configCmd   `cmd:"" help:"Check a configuration, or print its schema."`
	Verify   verifyCmd   `cmd:"" help:"Compare every mapped array with the objects it copies."`
	Access   accessCmd   `cmd:"" help:"Explain who may do what."`
	Schema   schemaCmd   `cmd:"" help:"Check objects against a schema."`
	User     userCmd     `cmd:"" help:"Create and manage users."`
	Mail     mailCmd     `cmd:"" help:"Try whether mails are sent."`
	SealKeys keysCmd     `cmd:"" name:"seal-keys" help:"Change the key that encrypts cursors and ids of events."`
	Import   importCmd   `cmd:"" help:"Load a file of objects into a store over HTTP."`
	Export   exportCmd   `cmd:"" help:"Write every object of a store as JSON lines."`
	Migrate  migrateCmd  `cmd:"" help:"Move stores and binaries to the backends of another configuration."`
	Backup   backupCmd   `cmd:"" help:"Make, list and verify backups."`
	Restore  restoreCmd  `cmd:"" help:"Restore a backup into empty data."`
	DLQ      dlqCmd      `cmd:"" name:"dlq" help:"List, redeliver and delete the dead letters of listeners."`
	Listener listenerCmd `cmd:"" help:"Show the state of listeners, and reset their position."`
	Bus      busCmd      `cmd:"" help:"Set up a bus whose users have few permissions."`
	Events   eventsCmd   `cmd:"" help:"Read the log of events."`
	OpenAPI  openapiCmd  `cmd:"" name:"openapi" help:"Describe the HTTP routes of a configuration (OpenAPI 3.1)."`
	AsyncAPI asyncapiCmd `cmd:"" name:"asyncapi" help:"Describe events and operations on the bus (AsyncAPI 3)."`
	Version  versionCmd  `cmd:"" help:"Print the version."`

	VersionFlag versionFlag `name:"version" help:"Print the version."`
}

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
	var c cli
	exited, code := false, exitDone
	parser := newParser(&c, s, func(n int) { exited, code = true, n }, kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(s))
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

// newParser knows the commands and their flags. exit is called after the help or the version.
func newParser(c *cli, s streams, exit func(int), more ...kong.Option) *kong.Kong {
	parser, err := kong.New(c, append(more,
		kong.Name("belfry"),
		kong.Description("A self-hosted backend: JSON objects in stores, copies that stay right, an event for everything."),
		kong.Vars{"roles": strings.Join(plan.Roles(), ", ")},
		kong.TypeMapper(reflect.TypeFor[templateName](), templateMapper{}),
		kong.UsageOnError(), kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Writers(s.out, s.err),
		kong.Exit(exit),
	)...)
	if err != nil {
		panic(err) // the declarations of the commands are invalid
	}
	return parser
}

// errFound ends a check that found differences, which it has reported.
var errFound = errors.New("differences were found")

// report prints an error and returns its exit code.
func report(err error, w io.Writer) int {
	var problems config.Problems
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errFound):
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
