package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"

	"belfry/pkg/app"
	"belfry/pkg/errs"
)

type exportCmd struct {
	configuration
	Store  string `arg:"" help:"Name of the store."`
	Output string `short:"o" help:"File to write; standard output when not given." placeholder:"FILE"`
}

// Run writes one object a line. A file appears under its name only when whole.
func (c *exportCmd) Run(ctx context.Context, s streams) error {
	loaded, err := c.load("")
	if err != nil {
		return err
	}
	if c.Output == "" {
		return app.Export(ctx, loaded, c.Store, s.out)
	}
	f, err := os.CreateTemp(filepath.Dir(c.Output), filepath.Base(c.Output)+".*")
	if err != nil {
		return errs.Wrap(err, errs.Invalid, "can't write beside %s", c.Output)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	w := bufio.NewWriterSize(f, 1<<20)
	err = app.Export(ctx, loaded, c.Store, w)
	if err = errors.Join(err, w.Flush(), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), c.Output)
}
