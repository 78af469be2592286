// Package gotest finds and runs single tests of the project's modules by go test, for the commands that run one
// after the other for a given time.
package gotest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Target is a test function, its package, and the folder of its module.
type Target struct{ Package, Name, Folder string }

// Main runs a command until it ends or is interrupted, and exits.
func Main(name string, run func(ctx context.Context) error) {
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	interrupted := ctx.Err() != nil
	release()
	switch {
	case interrupted:
		os.Exit(130)
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// List returns the functions whose name begins with a prefix and contains a text, in packages that patterns match from
// the project's root, which is the working folder. None is an error: a command that runs nothing must not succeed.
// Flags are of go test.
func List(ctx context.Context, prefix, contains string, flags []string, patterns ...string) ([]Target, error) {
	modules, err := Modules(".")
	if err != nil {
		return nil, err
	}
	var all []Target
	for _, p := range Parts(modules, patterns...) {
		cmd := exec.CommandContext(ctx, "go",
			slices.Concat([]string{"test", "-vet=off", "-list", "^" + prefix}, flags, p.Patterns)...)
		cmd.Dir = p.Folder
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		listed, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("listing the tests of %s: %w\n%s%s", p.Path, err, listed, stderr.String())
		}
		all = append(all, parse(string(listed), prefix, p.Folder)...)
	}
	return choose(all, contains)
}

// choose keeps the targets whose name contains a text.
func choose(targets []Target, contains string) ([]Target, error) {
	targets = slices.DeleteFunc(slices.Clone(targets),
		func(t Target) bool { return !strings.Contains(t.Name, contains) })
	if len(targets) == 0 {
		return nil, fmt.Errorf("no test has %q in its name", contains)
	}
	return targets, nil
}

// parse reads the output of go test -list: the names of a package, then a line with ok and the package.
func parse(listed, prefix, folder string) []Target {
	var all []Target
	var names []string
	for line := range strings.Lines(listed) {
		words := strings.Fields(line)
		switch {
		case len(words) == 1 && strings.HasPrefix(words[0], prefix):
			names = append(names, words[0])
		case len(words) > 1 && words[0] == "ok":
			for _, name := range names {
				all = append(all, Target{Package: words[1], Name: name, Folder: folder})
			}
			names = nil
		}
	}
	return all
}

// Run runs go test with arguments in the folder of a module, and writes its output to out.
func Run(ctx context.Context, out io.Writer, folder string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test"}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, out, out
	// On an interrupt go test ends its child processes; when it is killed they continue.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	return cmd.Run()
}

// Positive returns an error unless a flag's duration is positive.
func Positive(flag string, d time.Duration) error {
	if d <= 0 {
		return errors.New(flag + ": expected a duration such as 20s")
	}
	return nil
}
