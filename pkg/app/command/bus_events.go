package command

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

	"belfry/internal/count"
	"belfry/pkg/app/plan"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// Events asks for events.
type Events struct {
	Event []string `help:"Only events of this name, Store.Saved for instance; may be repeated." placeholder:"NAME"`
	Store []string `help:"Only events of this store; may be repeated." placeholder:"NAME"`
	UUID  []string `name:"uuid" help:"Only events of this object; may be repeated." placeholder:"UUID"`
}

func (f Events) selection() eventlog.Select {
	return eventlog.Select{Events: f.Event, Stores: f.Store, UUIDs: f.UUID}
}

// NewEvents asks for events as they are published.
type NewEvents struct {
	Events
	From string `default:"new" help:"Start at a sequence, a time (RFC 3339, or an age such as 36h), all, or new (${default})." placeholder:"PLACE"`

	from eventlog.From // by Valid
}

// Valid implements checked.
func (q *NewEvents) Valid() (err error) {
	q.from, err = eventlog.ParseFrom(q.From)
	return err
}

// EventTail returns events until it is interrupted. It never ends by itself, so that is no success: a script that
// follows events can tell that nothing follows them anymore.
var EventTail = Operation[NewEvents, Rows[*eventlog.Entry], none]{
	Name: "events tail", Help: "Print events as they are published, until interrupted.", Bus: Permitted,
	Prints: PrintText,
	Run: func(ctx context.Context, at *Place, q NewEvents, _ func(none)) (*Rows[*eventlog.Entry], error) {
		r := eventlog.Reader{From: q.from, Select: q.selection(), Follow: true}
		return rows(func(row func(*eventlog.Entry) error) error {
			err := r.Each(ctx, at.Bus.JetStream(), row)
			// A follower ends without an error also when the server denies what it reads with.
			return cmp.Or(err, ctx.Err())
		}), nil
	},
	Text: func(w io.Writer, _ NewEvents, all *Rows[*eventlog.Entry]) error { return writeEvents(w, all) },
}

// StoredEvents asks for events of the log.
type StoredEvents struct {
	Events
	Sequence []uint64 `arg:"" optional:"" help:"Sequences of single events."`
	From     string   `default:"all" help:"Start at a sequence, a time (RFC 3339, or an age such as 36h), or all (${default})." placeholder:"PLACE"`
	Limit    int      `help:"Maximum number of events to print." placeholder:"N"`

	from eventlog.From // by Valid
}

// Valid implements checked.
func (q *StoredEvents) Valid() (err error) {
	if q.from, err = eventlog.ParseFrom(q.From); err != nil {
		return err
	}
	if q.Limit < 0 {
		return errs.New(errs.Invalid, "--limit: expected a number of events, not %d", q.Limit)
	}
	if chosen := len(q.Event) + len(q.Store) + len(q.UUID); len(q.Sequence) > 0 && (chosen > 0 || q.From != "all") {
		return errs.New(errs.Invalid, "set either sequences or flags that select events, not both")
	}
	return nil
}

// errEnough ends a read that has reached its limit.
var errEnough = errors.New("enough")

// EventGet returns the stored events.
var EventGet = Operation[StoredEvents, Rows[*eventlog.Entry], none]{
	Name: "events get", Help: "Print stored events: of an object, of a store, since a time.", Bus: Permitted,
	Prints: PrintText,
	Run: func(ctx context.Context, at *Place, q StoredEvents, _ func(none)) (*Rows[*eventlog.Entry], error) {
		return rows(func(row func(*eventlog.Entry) error) error {
			if len(q.Sequence) > 0 {
				return singleEvents(ctx, at, q.Sequence, row)
			}
			n := 0
			r := eventlog.Reader{From: q.from, Select: q.selection()}
			err := r.Each(ctx, at.Bus.JetStream(), func(e *eventlog.Entry) error {
				if n++; q.Limit > 0 && n > q.Limit {
					return errEnough
				}
				return row(e)
			})
			if errors.Is(err, errEnough) {
				return nil
			}
			return err
		}), nil
	},
	Text: func(w io.Writer, _ StoredEvents, all *Rows[*eventlog.Entry]) error {
		out := bufio.NewWriter(w)
		err := writeEvents(out, all)
		return errors.Join(err, out.Flush())
	},
}

func singleEvents(ctx context.Context, at *Place, sequences []uint64, row func(*eventlog.Entry) error) error {
	for _, sequence := range sequences {
		e, err := eventlog.Get(ctx, at.Bus.JetStream(), sequence)
		if err != nil {
			return err
		}
		if err := row(e); err != nil {
			return err
		}
	}
	return nil
}

func writeEvents(w io.Writer, all *Rows[*eventlog.Entry]) error {
	return (*all)(func(e *eventlog.Entry) error { return writeEvent(w, e) })
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

// ErasedEvents asks for the removal of the events of objects.
type ErasedEvents struct {
	Store  string   `required:"" help:"The store of the object." placeholder:"NAME"`
	UUID   []string `required:"" name:"uuid" help:"The object; may be repeated." placeholder:"UUID"`
	DryRun bool     `help:"Count the events, and remove none."`
	Yes    bool     `help:"Do not ask."`
}

// Valid implements checked.
func (q ErasedEvents) Valid() error {
	for _, uuid := range q.UUID {
		if err := object.CheckUUID(uuid); err != nil {
			return errs.Wrap(err, errs.Invalid, "--uuid %q", uuid)
		}
	}
	return nil
}

// Question implements confirmed.
func (q ErasedEvents) Question() string {
	if q.Yes || q.DryRun {
		return ""
	}
	return fmt.Sprintf("Remove all events of %s %s from the log? Clients and listeners that have not seen them never "+
		"will, and there is no way back. Type yes: ", q.Store, strings.Join(q.UUID, ", "))
}

// erasedEvents is what was removed.
type erasedEvents struct {
	eventlog.Erasure
	failed  error
	unknown error // why the log may have no events of the store: it is not configured
}

// EventErase removes the events of objects from the log. It fails while some of them have to stay. A store that is not
// configured may have been removed from the configuration, so it is an error only if the log has no events of it.
var EventErase = Operation[ErasedEvents, erasedEvents, none]{
	Name: "events erase",
	Help: "Remove the events of an object from the log for good, once all listeners have handled them.", Bus: Permitted,
	Prints: PrintText,
	Run: func(ctx context.Context, at *Place, q ErasedEvents, _ func(none)) (*erasedEvents, error) {
		r := &erasedEvents{}
		if c := at.Config; c != nil && c.Stores[q.Store] == nil {
			r.unknown = plan.UnknownStore(c, q.Store)
		}
		r.Erasure, r.failed = eventlog.Erase(ctx, at.Bus.JetStream(),
			eventlog.Select{Stores: []string{q.Store}, UUIDs: q.UUID}, time.Now().Add(-eventlog.EraseAfter), q.DryRun)
		if r.failed != nil && r.Erased == 0 {
			return nil, r.failed
		}
		return r, nil
	},
	Text: writeErased,
}

func writeErased(w io.Writer, q ErasedEvents, r *erasedEvents) error {
	nothing := r.failed == nil && r.Erasure == (eventlog.Erasure{})
	switch {
	case nothing:
		fmt.Fprintf(w, "the log has no events of %s %s\n", q.Store, strings.Join(q.UUID, ", "))
	case q.DryRun:
		fmt.Fprintf(w, "%s would be removed\n", count.Of(r.Erased, "event"))
	default:
		fmt.Fprintf(w, "%s removed\n", count.Of(r.Erased, "event"))
	}
	switch {
	case r.failed != nil:
		return r.failed
	case nothing && r.unknown != nil:
		return r.unknown
	case r.Unhandled > 0:
		return errs.New(errs.Conflict,
			"%d events stay, which the listener %s has not handled yet: run the command again once it has", r.Unhandled,
			r.Listener)
	case r.Young > 0:
		return errs.New(errs.Conflict, "%d events of the last minute stay: run the command again in a minute", r.Young)
	}
	return nil
}
