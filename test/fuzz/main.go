// Command fuzz runs every fuzz target of the module, one after the other, for
// a given time each, and stops at the first finding. The input that fails is
// then in the target's testdata folder, where every later test run tries it.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
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

func main() {
	each := flag.Duration("time", 20*time.Second, "how long each target runs")
	only := flag.String("target", "", "run only targets whose name contains this")
	flag.Parse()
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := fuzz(ctx, *each, *only, os.Stdout)
	interrupted := ctx.Err() != nil
	release()
	switch {
	case interrupted:
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

// target is a fuzz function and the package it is in.
type target struct{ pkg, name string }

func fuzz(ctx context.Context, each time.Duration, only string, out io.Writer) error {
	if each <= 0 {
		return errors.New("-time: expected a time such as 20s")
	}
	targets, err := list(ctx)
	if err != nil {
		return err
	}
	if targets, err = choose(targets, only); err != nil {
		return err
	}
	for _, t := range targets {
		fmt.Fprintf(out, "%s %s\n", t.pkg, t.name)
		if err := run(ctx, t, each, out); err != nil {
			return fmt.Errorf("%s %s: %w", t.pkg, t.name, err)
		}
	}
	fmt.Fprintf(out, "%d targets, no finding\n", len(targets))
	return nil
}

// choose picks the targets whose name contains a text. None is an error: to run
// nothing finds nothing.
func choose(targets []target, only string) ([]target, error) {
	targets = slices.DeleteFunc(slices.Clone(targets), func(t target) bool { return !strings.Contains(t.name, only) })
	if len(targets) == 0 {
		return nil, errors.New("there is no such target")
	}
	return targets, nil
}

// list asks every package of the module for its targets.
func list(ctx context.Context) ([]target, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-vet=off", "-list", "^Fuzz", "belfry/...")
	var told bytes.Buffer
	cmd.Stderr = &told
	listed, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the targets: %w\n%s%s", err, listed, told.String())
	}
	return parse(string(listed)), nil
}

// parse reads what go test -list writes: the names of a package, then a line
// with ok and the package.
func parse(listed string) []target {
	var all []target
	var names []string
	for line := range strings.Lines(listed) {
		words := strings.Fields(line)
		switch {
		case len(words) == 1 && strings.HasPrefix(words[0], "Fuzz"):
			names = append(names, words[0])
		case len(words) > 1 && words[0] == "ok":
			for _, name := range names {
				all = append(all, target{pkg: words[1], name: name})
			}
			names = nil
		}
	}
	return all
}

func run(ctx context.Context, t target, each time.Duration, out io.Writer) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", each.String(), t.pkg)
	cmd.Stdout, cmd.Stderr = out, out
	// Asked, go test ends its workers; killed, it would leave them behind.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd.Run()
}
