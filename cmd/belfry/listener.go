package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"belfry/pkg/bus"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/event"
	"belfry/pkg/listener/replay"
	"belfry/pkg/missed"
)

type listenerCmd struct {
	List    listenerListCmd    `cmd:"" help:"Show the state of each listener."`
	Reset   listenerResetCmd   `cmd:"" help:"Restart a listener at another position in the log."`
	Confirm listenerConfirmCmd `cmd:"" help:"Confirm that what a listener has missed is dealt with."`
}

type listenerListCmd struct {
	busFlags
	JSON bool `name:"json" help:"One JSON object a line."`
}

// Run prints a line for each listener.
func (c *listenerListCmd) Run(ctx context.Context, s streams) error {
	return c.connectAs(ctx, func(ctx context.Context, b *bus.Client) error {
		all, err := replay.List(ctx, b.JetStream())
		if err != nil {
			return err
		}
		asking, done := b.UntilDenied(ctx, missed.SubjectList)
		defer done()
		gaps, err := missed.Fetch(asking, b.Conn())
		if err != nil {
			fmt.Fprintf(s.err, "belfry: whether listeners have missed events is not known: %v\n", err)
		}
		rows := listenerRows(all, gaps)
		if c.JSON {
			return writeJSONLines(s.out, rows)
		}
		return writeListeners(s.out, rows)
	})
}

// listenerRow is a listener with what it has missed.
type listenerRow struct {
	*replay.Listener
	Gone   bool           `json:"gone,omitempty"` // it has no consumer any more, or not again yet
	Missed *missed.Missed `json:"missed,omitempty"`
}

// listenerRows returns the listeners, and those that have missed events and have no consumer.
func listenerRows(all []*replay.Listener, gaps []missed.Status) []listenerRow {
	has := map[string]bool{}
	for _, g := range gaps {
		has[g.Consumer] = true
	}
	rows, row := make([]listenerRow, 0, len(all)), map[string]int{}
	for i, l := range all {
		rows = append(rows, listenerRow{Listener: l})
		for _, consumer := range l.Consumers {
			row[consumer] = i
		}
	}
	for _, g := range gaps {
		i, known := row[g.Consumer]
		if !known {
			name, ordered := replay.ListenerOf(g.Consumer, func(consumer string) bool { return has[consumer] })
			if i, known = row["gone "+name]; !known {
				i = len(rows)
				rows, row["gone "+name] = append(rows, listenerRow{Listener: &replay.Listener{Name: name, Ordered: ordered}, Gone: true}), i
			}
		}
		rows[i].Missed = rows[i].Missed.With(g.Missed)
	}
	return rows
}

func writeListeners(w io.Writer, rows []listenerRow) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tLAG\tUNACKED\tREDELIVERED\tRETRIES\tLETTERS\tLAST ACTIVE\tMISSED")
	for _, l := range rows {
		name, last := l.Name, "never"
		if l.Ordered {
			name += " (ordered)"
		}
		if l.Gone {
			name += " (gone)"
		}
		if !l.PausedUntil.IsZero() {
			name += " (paused until " + l.PausedUntil.Format(time.RFC3339) + ")"
		}
		switch {
		case !l.Last.IsZero():
			last = l.Last.UTC().Format(time.RFC3339)
		case l.Used:
			last = "before the bus started"
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\n", name, l.Lag, l.Unacked, l.Redelivered, l.Retries, l.Letters, last, describeMissed(l.Missed))
	}
	return t.Flush()
}

func describeMissed(m *missed.Missed) string {
	if m == nil {
		return "-"
	}
	text := fmt.Sprintf("%s events since %s: the log was %s", m.Count(), m.Since.Format(time.RFC3339), m.Reason)
	switch m.Reason {
	case missed.Expired:
		text = fmt.Sprintf("%s events since %s, which the log has removed", m.Count(), m.Since.Format(time.RFC3339))
	case missed.Removed:
		text = fmt.Sprintf("%s events since %s, which somebody has removed from the log", m.Count(), m.Since.Format(time.RFC3339))
	}
	switch {
	case !m.Repaired.IsZero():
		text += ", repaired " + m.Repaired.Format(time.RFC3339)
	case !m.Confirmed.IsZero():
		text += ", confirmed " + m.Confirmed.Format(time.RFC3339)
	}
	return text
}

type listenerConfirmCmd struct {
	busFlags
	Name string `arg:"" help:"Name of the listener."`
}

// Run has the belfry on the bus record the confirmation.
func (c *listenerConfirmCmd) Run(ctx context.Context, s streams) error {
	return c.connect(ctx, func(b *bus.Client) error {
		consumers := []string{c.Name}
		for p := range event.Partitions {
			consumers = append(consumers, fmt.Sprintf("%s-%d", c.Name, p))
		}
		asking, done := b.UntilDenied(ctx, missed.SubjectConfirm)
		defer done()
		if err := missed.Confirm(asking, b.Conn(), consumers); err != nil {
			return err
		}
		_, err := fmt.Fprintf(s.out, "what %s has missed is confirmed to be dealt with\n", c.Name)
		return err
	})
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
	return c.connectAs(ctx, func(ctx context.Context, b *bus.Client) error {
		sequence, err := replay.Reset(ctx, b.JetStream(), c.Name, from)
		if err == nil {
			_, err = fmt.Fprintf(s.out, "%s reads the log from sequence %d on\n", c.Name, sequence)
		}
		return err
	})
}
