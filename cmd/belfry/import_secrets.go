package main

import (
	"context"
	"fmt"

	"belfry/config"
	"belfry/internal/count"
	"belfry/pkg/app/command"
	"belfry/pkg/errs"
)

// withSecrets imports an export with secrets: idents and users with their hashes.
func (c *importCmd) withSecrets(ctx context.Context, s streams, loaded *config.Config) error {
	if c.URL != "" || c.Token != "" || c.Key != "" || c.Batch != "" || c.Skip != 0 || c.DryRun || c.Stop {
		return errs.New(errs.Invalid,
			"--secrets: only --update, --config and --data can be given with it, since nothing is sent over HTTP")
	}
	input, _, err := c.open(ctx, s.in)
	if err != nil {
		return err
	}
	defer func() { _ = input.Close() }()
	r, err := command.Import.Do(ctx, loaded, command.ImportRequest{Store: c.Store, Update: c.Update, From: input})
	if err != nil {
		return err
	}
	for _, rejected := range r.Rejected {
		fmt.Fprintf(s.err, "%s: %s\n", c.File, rejected)
	}
	if r.More > 0 {
		fmt.Fprintf(s.err, "... and %d more\n", r.More)
	}
	if _, err := fmt.Fprintf(s.out, "%s read, %d created, %d updated, %d existed already, %d rejected\n",
		count.Of(r.Read, "object"), r.Created, r.Updated, r.Existing, len(r.Rejected)+r.More); err != nil {
		return err
	}
	if !r.Clean() {
		return errRejected
	}
	return nil
}
