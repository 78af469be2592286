package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"belfry/pkg/app/command"
)

type reloadCmd struct {
	configuration
}

// Run has the process that serves the data folder read its configuration again.
func (c *reloadCmd) Run(ctx context.Context, s streams) error {
	folder, err := c.dataFolder()
	if err != nil {
		return err
	}
	r, err := command.Reload(ctx, folder)
	if err != nil {
		return err
	}
	text := r.File + ": reloaded; nothing has changed\n"
	if len(r.Changed) > 0 {
		text = r.File + ": reloaded; changed are\n  " + strings.Join(r.Changed, "\n  ") + "\n"
	}
	if _, err = fmt.Fprint(s.out, text); err != nil || len(r.Building) == 0 {
		return err
	}
	_, err = fmt.Fprintf(s.err, "these indexes are being built in the background; lists that need one are refused until it is complete: %s\n", strings.Join(r.Building, ", "))
	return err
}

// dataFolder returns the data folder. The configuration is read only where no flag names the folder: a service has
// its own environment, without which its file may not be valid here.
func (c *reloadCmd) dataFolder() (string, error) {
	if c.Data != "" {
		return filepath.Abs(c.Data)
	}
	loaded, err := c.load("")
	if err != nil {
		return "", err
	}
	return loaded.Data, nil
}
