package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"belfry/pkg/bus"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

type eventsCmd struct {
	Tail eventsTailCmd `cmd:"" help:"Print events as they are published, until interrupted."`
	Get  eventsGetCmd  `cmd:"" help:"Print stored events: of an object, of a store, since a time."`

	Erase eventsEraseCmd `cmd:"" help:"Remove the events of an object from the log for good, once all listeners have handled them."`
}

// eventsFlags select events.
type eventsFlags struct {
	Event []string `help:"Only events of this name, Store.Saved for instance; may be repeated." placeholder:"NAME"`
	Store []string `help:"Only events of this store; may be repeated." placeholder:"NAME"`
	UUID  []string `name:"uuid" help:"Only events of this object; may be repeated." placeholder:"UUID"`
}

func (f eventsFlags) selection() eventlog.Select {
	return eventlog.Select{Events: f.Event, Stores: f.Store, UUIDs: f.UUID}
}

type eventsTailCmd struct {
	busFlags
	eventsFlags
	From string `default:"new" help:"Start at a sequence, a time (RFC 3339, or an age such as 36h), all, or new (${default})." placeholder:"PLACE"`
}

// Run prints events until it is interrupted. It never ends by itself, so that is no success: a script that follows
// events can tell that nothing follows them anymore.
func (c *eventsTailCmd) Run(ctx context.Context, s streams) error {
	from, err := eventlog.ParseFrom(c.From)
	if err != nil {
		return err
	}
	r := eventlog.Reader{From: from, Select: c.selection(), Follow: true}
	err = c.connectAs(ctx, func(ctx context.Context, b *bus.Client) error {
		err := r.Each(ctx, b.JetStream(), func(e *eventlog.Entry) error { return writeEvent(s.out, e) })
		return cmp.Or(err, ctx.Err()) // a follower ends without an error also when the server denies what it reads with
	})
	if err == nil {
		err = ctx.Err()
	}
	return err
}

type eventsGetCmd struct {
	busFlags
	eventsFlags
	Sequence []uint64 `arg:"" optional:"" help:"Sequences of single events."`
	From     string   `default:"all" help:"Start at a sequence, a time (RFC 3339, or an age such as 36h), or all (${default})." placeholder:"PLACE"`
	Limit    int      `help:"Maximum number of events to print." placeholder:"N"`
}

// errEnough ends a read that has reached its limit.
var errEnough = errors.New("enough")

// Run prints the stored events, and ends.
func (c *eventsGetCmd) Run(ctx context.Context, s streams) error {
	from, err := eventlog.ParseFrom(c.From)
	if err != nil {
		return err
	}
	if chosen := len(c.Event) + len(c.Store) + len(c.UUID); len(c.Sequence) > 0 && (chosen > 0 || c.From != "all") {
		return errs.New(errs.Invalid, "set either sequences or flags that select events, not both")
	}
	out := bufio.NewWriter(s.out)
	err = c.connectAs(ctx, func(ctx context.Context, b *bus.Client) error {
		if len(c.Sequence) > 0 {
			return c.single(ctx, b, out)
		}
		n := 0
		r := eventlog.Reader{From: from, Select: c.selection()}
		err := r.Each(ctx, b.JetStream(), func(e *eventlog.Entry) error {
			if n++; c.Limit > 0 && n > c.Limit {
				return errEnough
			}
			return writeEvent(out, e)
		})
		if errors.Is(err, errEnough) {
			return nil
		}
		return err
	})
	return errors.Join(err, out.Flush())
}

func (c *eventsGetCmd) single(ctx context.Context, b *bus.Client, w io.Writer) error {
	for _, sequence := range c.Sequence {
		e, err := eventlog.Get(ctx, b.JetStream(), sequence)
		if err != nil {
			return err
		}
		if err := writeEvent(w, e); err != nil {
			return err
		}
	}
	return nil
}

// writeEvent writes the envelope as one line, with its sequence in the log.
func writeEvent(w io.Writer, e *eventlog.Entry) error {
	if len(e.Data) < 2 || !json.Valid(e.Data) || e.Data[0] != '{' {
		_, err := fmt.Fprintf(w, `{"sequence":%d,"unreadable":%q}`+"\n", e.Sequence, e.Subject)
		return err
	}
	_, err := fmt.Fprintf(w, `{"sequence":%d,%s`+"\n", e.Sequence, e.Data[1:])
	return err
}

type eventsEraseCmd struct {
	busFlags
	Store  string   `required:"" help:"The store of the object." placeholder:"NAME"`
	UUID   []string `required:"" name:"uuid" help:"The object; may be repeated." placeholder:"UUID"`
	DryRun bool     `help:"Count the events, and remove none."`
	Yes    bool     `help:"Do not ask."`
}

// check validates the objects. A store that is not configured may have been removed from the configuration, so it is an error only
// if the log has no events of it: unknown is the message for that case.
func (c *eventsEraseCmd) check() (unknown string, err error) {
	for _, uuid := range c.UUID {
		if err := object.CheckUUID(uuid); err != nil {
			return "", errs.Wrap(err, errs.Invalid, "--uuid %q", uuid)
		}
	}
	if c.URL != "" {
		return "", nil // there may be no configuration
	}
	loaded, err := c.load("")
	if err == nil && loaded.Stores[c.Store] == nil {
		unknown = fmt.Sprintf("no store %q is configured; there are %s", c.Store, strings.Join(storeNames(loaded), ", "))
	}
	return unknown, err
}

// Run removes the events of objects from the log. It fails while some of them have to stay.
func (c *eventsEraseCmd) Run(ctx context.Context, s streams) error {
	unknown, err := c.check()
	if err != nil {
		return err
	}
	if !c.Yes && !c.DryRun {
		question := fmt.Sprintf("Remove all events of %s %s from the log? Clients and listeners that have not seen them never will, and there is no way back. Type yes: ", c.Store, strings.Join(c.UUID, ", "))
		if err := confirm(ctx, s, question); err != nil {
			return err
		}
	}
	return c.connectAs(ctx, func(ctx context.Context, b *bus.Client) error {
		e, err := eventlog.Erase(ctx, b.JetStream(), eventlog.Select{Stores: []string{c.Store}, UUIDs: c.UUID}, time.Now().Add(-eventlog.EraseAfter), c.DryRun)
		done := "removed"
		if c.DryRun {
			done = "would be removed"
		}
		if err != nil && e.Erased == 0 {
			return err
		}
		if err == nil && e == (eventlog.Erasure{}) {
			fmt.Fprintf(s.out, "the log has no events of %s %s\n", c.Store, strings.Join(c.UUID, ", "))
		} else {
			fmt.Fprintf(s.out, "%d events %s\n", e.Erased, done)
		}
		switch {
		case err != nil:
			return err
		case unknown != "" && e == (eventlog.Erasure{}):
			return errs.New(errs.Invalid, "%s", unknown)
		case e.Unhandled > 0:
			return errs.New(errs.Conflict, "%d events stay, which the listener %s has not handled yet: run the command again once it has", e.Unhandled, e.Listener)
		case e.Young > 0:
			return errs.New(errs.Conflict, "%d events of the last minute stay: run the command again in a minute", e.Young)
		}
		return nil
	})
}
