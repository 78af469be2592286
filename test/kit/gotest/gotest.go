// Package gotest finds and runs single tests of the module by go test, for the commands that run one
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

// Target is a test function and its package.
type Target struct{ Package, Name string }

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

// List returns the functions of packages whose name begins with a prefix and contains a text. None is
// an error: a command that runs nothing must not succeed.
func List(ctx context.Context, prefix, contains string, args ...string) ([]Target, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-vet=off", "-list", "^" + prefix}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	listed, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the tests: %w\n%s%s", err, listed, stderr.String())
	}
	return choose(parse(string(listed), prefix), contains)
}

// choose keeps the targets whose name contains a text.
func choose(targets []Target, contains string) ([]Target, error) {
	targets = slices.DeleteFunc(slices.Clone(targets), func(t Target) bool { return !strings.Contains(t.Name, contains) })
	if len(targets) == 0 {
		return nil, fmt.Errorf("no test has %q in its name", contains)
	}
	return targets, nil
}

// parse reads the output of go test -list: the names of a package, then a line with ok and the package.
func parse(listed, prefix string) []Target {
	var all []Target
	var names []string
	for line := range strings.Lines(listed) {
		words := strings.Fields(line)
		switch {
		case len(words) == 1 && strings.HasPrefix(words[0], prefix):
			names = append(names, words[0])
		case len(words) > 1 && words[0] == "ok":
			for _, name := range names {
				all = append(all, Target{Package: words[1], Name: name})
			}
			names = nil
		}
	}
	return all
}

// Run runs go test with arguments and writes its output to out.
func Run(ctx context.Context, out io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test"}, args...)...)
	cmd.Stdout, cmd.Stderr = out, out
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
