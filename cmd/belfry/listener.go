package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"belfry/pkg/bus"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/bus/replay"
)

type listenerCmd struct {
	List  listenerListCmd  `cmd:"" help:"Show the state of each listener."`
	Reset listenerResetCmd `cmd:"" help:"Restart a listener at another position in the log."`
}

type listenerListCmd struct {
	busFlags
	JSON bool `name:"json" help:"One JSON object a line."`
}

// Run prints a line for each listener.
func (c *listenerListCmd) Run(ctx context.Context, s streams) error {
	return c.connect(ctx, func(b *bus.Client) error {
		all, err := replay.List(ctx, b.JetStream())
		if err != nil {
			return err
		}
		if c.JSON {
			e := json.NewEncoder(s.out)
			for _, l := range all {
				if err := e.Encode(l); err != nil {
					return err
				}
			}
			return nil
		}
		return writeListeners(s.out, all)
	})
}

func writeListeners(w io.Writer, all []*replay.Listener) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tLAG\tUNACKED\tREDELIVERED\tRETRIES\tLETTERS\tLAST ACTIVE")
	for _, l := range all {
		name, last := l.Name, "never"
		if l.Ordered {
			name += " (ordered)"
		}
		if !l.Last.IsZero() {
			last = l.Last.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%s\n", name, l.Lag, l.Unacked, l.Redelivered, l.Retries, l.Letters, last)
	}
	return t.Flush()
}

type listenerResetCmd struct {
	busFlags
	Name string `arg:"" help:"Name of the listener."`
	From string `required:"" help:"A sequence, a time (RFC 3339, or 36h for ago), all, or new, which skips pending events." placeholder:"PLACE"`
}

// Run moves the listener and prints its new position.
func (c *listenerResetCmd) Run(ctx context.Context, s streams) error {
	from, err := eventlog.ParseFrom(c.From)
	if err != nil {
		return err
	}
	return c.connect(ctx, func(b *bus.Client) error {
		sequence, err := replay.Reset(ctx, b.JetStream(), c.Name, from)
		if err == nil {
			_, err = fmt.Fprintf(s.out, "%s reads the log from sequence %d on\n", c.Name, sequence)
		}
		return err
	})
}
