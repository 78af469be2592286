package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"

	"belfry/config"
	"belfry/pkg/app/command"
	"belfry/pkg/errs"
)

type exportCmd struct {
	configuration
	Store  string `arg:"" help:"Name of the store."`
	Output string `short:"o" help:"File to write; standard output when not given." placeholder:"FILE"`

	Secrets bool `help:"With the fields that never leave the server otherwise, hashes of passwords among them."`
}

// Run writes one object per line. A file gets its name only when it is complete.
func (c *exportCmd) Run(ctx context.Context, s streams) error {
	loaded, err := c.load("")
	if err != nil {
		return err
	}
	if c.Output == "" {
		return command.Export(ctx, loaded, c.Store, c.Secrets, s.out)
	}
	info, err := os.Stat(c.Output)
	switch {
	case err != nil || info.Mode().IsRegular():
		return c.replace(ctx, loaded)
	case info.IsDir():
		return errs.New(errs.Invalid, "--output: %s is a folder; a file is expected", c.Output)
	default:
		return c.pour(ctx, loaded)
	}
}

// replace writes a temporary file in the same folder, and renames it when it is complete.
func (c *exportCmd) replace(ctx context.Context, loaded *config.Config) error {
	f, err := os.CreateTemp(filepath.Dir(c.Output), filepath.Base(c.Output)+".*")
	if err != nil {
		return errs.Wrap(err, errs.Invalid, "--output: can't write a file beside %s", c.Output)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	w := bufio.NewWriterSize(f, 1<<20)
	err = command.Export(ctx, loaded, c.Store, c.Secrets, w)
	if err = errors.Join(err, w.Flush(), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), c.Output)
}

// pour writes to a pipe or a device, which must not be replaced.
func (c *exportCmd) pour(ctx context.Context, loaded *config.Config) error {
	f, err := os.OpenFile(c.Output, os.O_WRONLY, 0)
	if err != nil {
		return errs.Wrap(err, errs.Invalid, "--output: can't write to %s", c.Output)
	}
	return errors.Join(command.Export(ctx, loaded, c.Store, c.Secrets, f), f.Close())
}
