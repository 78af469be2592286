package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"belfry/pkg/app/command"
	"belfry/pkg/errs"
)

type keysCmd struct {
	List   keysListCmd   `cmd:"" help:"List the keys, without showing them."`
	Rotate keysRotateCmd `cmd:"" help:"Add a key. It is used after a minute; the earlier ones open what they have sealed for a time."`
}

type keysListCmd struct {
	configuration
	JSON bool `name:"json" help:"One JSON object a line."`
}

// Run prints a line for each key.
func (c *keysListCmd) Run(ctx context.Context, s streams) error {
	return c.manage(ctx, s.out, func(time.Duration) command.KeysRequest { return command.KeysRequest{} })
}

type keysRotateCmd struct {
	keysListCmd
	Keep *time.Duration `help:"How long cursors and ids that the earlier keys have sealed stay valid; 0s: not at all. Default: as long as the log keeps events (bus.events.maxAge)." placeholder:"DURATION"`
}

// Run adds a key and prints a line for each.
func (c *keysRotateCmd) Run(ctx context.Context, s streams) error {
	if c.Keep != nil && *c.Keep < 0 {
		return errs.New(errs.Invalid, "--keep: %s is negative", *c.Keep)
	}
	return c.manage(ctx, s.out, func(maxAge time.Duration) command.KeysRequest {
		if c.Keep != nil {
			maxAge = *c.Keep
		}
		return command.KeysRequest{Rotate: true, Keep: maxAge}
	})
}

// manage sends a request, which may depend on how long the log keeps events.
func (c *keysListCmd) manage(ctx context.Context, out io.Writer, request func(maxAge time.Duration) command.KeysRequest) error {
	loaded, err := c.load("")
	if err != nil {
		return err
	}
	keys, err := command.ManageKeys(ctx, loaded, request(loaded.Bus.Events.MaxAge))
	if err != nil {
		return err
	}
	if c.JSON {
		return writeJSONLines(out, keys)
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FROM\tUNTIL\tCURRENT")
	for _, k := range keys {
		fmt.Fprintf(t, "%s\t%s\t%t\n", orDash(k.From), orDash(k.Until), k.Current)
	}
	return t.Flush()
}

func orDash(at *time.Time) string {
	if at == nil {
		return "-"
	}
	return at.Format(time.RFC3339)
}
