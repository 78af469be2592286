// Command demo loads real data into a belfry of its own through HTTP and
// shows how copies follow: the countries and subdivisions of ISO 3166, from
// Debian's package iso-codes. Its exit code reports whether all checks passed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	sample := flag.Bool("sample", false, "load the small sample instead of the complete data")
	program := flag.String("belfry", "", "the belfry to run, instead of one built from here")
	flag.Parse()
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := show(ctx, *program, *sample, os.Stdout, os.Stderr)
	release()
	switch {
	case errors.Is(err, context.Canceled):
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// show runs the demo; program is built when it is "".
func show(ctx context.Context, program string, sample bool, out, progress io.Writer) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "belfry-demo-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	data, err := choose(ctx, root, sample, out)
	if err != nil {
		return err
	}
	if program == "" {
		program = filepath.Join(work, "belfry")
		build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/belfry")
		build.Dir, build.Stderr = root, progress
		if err := build.Run(); err != nil {
			return fmt.Errorf("building belfry: %w", err)
		}
	}
	config, err := nearPath(filepath.Join(root, "config", "demo.yaml"))
	if err != nil {
		return err
	}
	d := &demo{program: program, config: config, data: data, work: work, out: out, err: progress}
	return d.run(ctx)
}

// nearPath returns a path relative to the working directory, to print short
// commands.
func nearPath(path string) (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	return filepath.Rel(here, path)
}

// choose finds the data and prints its source.
func choose(ctx context.Context, root string, sample bool, out io.Writer) (*dataset, error) {
	folder := filepath.Join(root, "test", "demo", "sample")
	what := "the sample that comes with belfry"
	if !sample {
		found, err := findISO(ctx, filepath.Join(root, ".cache", "iso-codes"))
		switch {
		case err == nil:
			folder, what = found, "Debian's iso-codes"
		case ctx.Err() != nil:
			return nil, ctx.Err()
		default:
			fmt.Fprintf(out, "Debian's iso-codes is not available here (%v).\n", err)
		}
	}
	data, err := readISO(folder)
	if err == nil {
		fmt.Fprintf(out, "Data: %s: %d countries, %d subdivisions\n", what, len(data.countries), len(data.subdivisions))
	}
	return data, err
}
