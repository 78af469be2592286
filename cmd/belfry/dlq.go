package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"belfry/internal/count"
	"belfry/pkg/bus"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/listener/deadletter"
)

type dlqCmd struct {
	List  dlqListCmd  `cmd:"" help:"List the dead letters: events that a listener could not handle."`
	Show  dlqShowCmd  `cmd:"" help:"Show a dead letter with its event."`
	Retry dlqRetryCmd `cmd:"" help:"Redeliver dead letters to their listener."`
	Drop  dlqDropCmd  `cmd:"" help:"Delete dead letters permanently."`
}

// lettersFlags select dead letters.
type lettersFlags struct {
	Listener string `help:"Only dead letters of this listener." placeholder:"NAME"`
	Event    string `help:"Only events of this name, Store.Saved for instance." placeholder:"NAME"`
	Store    string `help:"Only events of this store." placeholder:"NAME"`
	UUID     string `name:"uuid" help:"Only events of this object." placeholder:"UUID"`
	Reason   string `help:"Only dead letters whose reason contains this." placeholder:"TEXT"`
	Since    string `help:"Only dead letters since a time (RFC 3339, or an age such as 36h)." placeholder:"TIME"`
}

func (f lettersFlags) selection() (deadletter.Select, error) {
	s := deadletter.Select{Listener: f.Listener, Event: f.Event, Store: f.Store, UUID: f.UUID, Reason: f.Reason}
	var err error
	if f.Since != "" {
		s.Since, err = eventlog.ParseTime(f.Since)
	}
	return s, err
}

// letterView is a dead letter as JSON.
type letterView struct {
	ID       uint64          `json:"id"`
	Listener string          `json:"listener"`
	Event    string          `json:"event"`
	Store    string          `json:"store"`
	UUID     string          `json:"uuid"`
	Reason   string          `json:"reason"`
	Attempts int             `json:"attempts"`
	Retries  int             `json:"retries"`
	Time     time.Time       `json:"time"`
	Sequence uint64          `json:"sequence"`
	Omitted  bool            `json:"omitted,omitempty"`
	Envelope json.RawMessage `json:"envelope,omitempty"`
	Raw      []byte          `json:"raw,omitempty"`
}

func view(l *deadletter.Letter) letterView {
	v := letterView{
		ID: l.ID, Listener: l.Listener, Event: string(l.Event), Store: l.Store, UUID: l.UUID, Reason: l.Reason,
		Attempts: l.Attempts, Retries: l.Retries, Time: l.Time, Sequence: l.Sequence, Omitted: l.Omitted,
	}
	if json.Valid(l.Data) {
		v.Envelope = l.Data
	} else {
		v.Raw = l.Data
	}
	return v
}

type dlqListCmd struct {
	busFlags
	lettersFlags
	JSON bool `name:"json" help:"One JSON object a line."`
}

// Run prints a line for each selected dead letter.
func (c *dlqListCmd) Run(ctx context.Context, s streams) error {
	selected, err := c.selection()
	if err != nil {
		return err
	}
	return c.connectAs(ctx, func(ctx context.Context, b *bus.Client) error {
		if c.JSON {
			e := json.NewEncoder(s.out)
			return deadletter.List(ctx, b, selected, func(l *deadletter.Letter) error { return e.Encode(view(l)) })
		}
		return writeLetters(ctx, s.out, b, selected)
	})
}

// writeLetters writes a table; without a letter its head alone, which an error takes the place of.
func writeLetters(ctx context.Context, w io.Writer, b *bus.Client, selected deadletter.Select) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tLISTENER\tEVENT\tSTORE\tUUID\tATTEMPTS\tTIME\tREASON")
	rows := 0
	err := deadletter.List(ctx, b, selected, func(l *deadletter.Letter) error {
		rows++
		_, err := fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n",
			l.ID, l.Listener, l.Event, l.Store, l.UUID, l.Attempts, l.Time.UTC().Format(time.RFC3339), l.Reason)
		return err
	})
	if err != nil && rows == 0 {
		return err
	}
	return errors.Join(err, t.Flush())
}

type dlqShowCmd struct {
	busFlags
	ID uint64 `arg:"" help:"Number of the dead letter, as printed by list."`
}

// Run prints a dead letter as JSON.
func (c *dlqShowCmd) Run(ctx context.Context, s streams) error {
	return c.connectAs(ctx, func(ctx context.Context, b *bus.Client) error {
		l, err := deadletter.Get(ctx, b, c.ID)
		if err != nil {
			return err
		}
		e := json.NewEncoder(s.out)
		e.SetIndent("", "  ")
		return e.Encode(view(l))
	})
}

// chosenLetters are the dead letters that a command acts on.
type chosenLetters struct {
	busFlags
	lettersFlags
	ID  []uint64 `arg:"" optional:"" help:"Numbers of dead letters, as printed by list."`
	All bool     `help:"Every dead letter."`
}

// each acts on the dead letters that exist at the beginning: one that a listener returns in the meantime
// is not processed again.
func (c *chosenLetters) each(ctx context.Context, w io.Writer, done string, act func(context.Context, deadletter.Bus, uint64) error) error {
	selected, err := c.selection()
	if err != nil {
		return err
	}
	switch given := !selected.Empty(); {
	case len(c.ID) > 0 && (given || c.All), given && c.All:
		return errs.New(errs.Invalid, "give either numbers, or flags that select dead letters, or --all")
	case len(c.ID) == 0 && !given && !c.All:
		return errs.New(errs.Invalid, "no dead letters selected: give their numbers, flags that select them, or --all")
	}
	return c.connectAs(ctx, func(ctx context.Context, b *bus.Client) error {
		ids := c.ID
		if len(ids) == 0 {
			err := deadletter.List(ctx, b, selected, func(l *deadletter.Letter) error { ids = append(ids, l.ID); return nil })
			if err != nil {
				return err
			}
		}
		n, failed := 0, error(nil)
		for _, id := range ids {
			err := act(ctx, b, id)
			if err == nil {
				n++
			}
			failed = errors.Join(failed, err)
			if err != nil && !errors.Is(err, errs.NotFound) && !errors.Is(err, errs.TooLarge) {
				break // the next one would fail, too
			}
		}
		fmt.Fprintf(w, "%d of %s %s\n", n, count.Of(len(ids), "dead letter"), done)
		return failed
	})
}

type dlqRetryCmd struct{ chosenLetters }

// Run redelivers the chosen dead letters to their listeners.
func (c *dlqRetryCmd) Run(ctx context.Context, s streams) error {
	return c.each(ctx, s.out, "to be redelivered", deadletter.Retry)
}

type dlqDropCmd struct{ chosenLetters }

// Run deletes the chosen dead letters.
func (c *dlqDropCmd) Run(ctx context.Context, s streams) error {
	return c.each(ctx, s.out, "deleted", deadletter.Drop)
}
