package copies

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/mapping"
	"belfry/pkg/store"
)

// A pass over many objects is made in parts, so that its event does not stay in the log until all is done: the log
// keeps a limited number of events, and each copy that changes is one more. After a part, the listener hands the event
// over to itself with what is left.

// Unfinished are the events by which work continues.
type Unfinished []*event.Envelope

// Error implements error.
func (u *Unfinished) Error() string { return "the work on an event continues with another one" }

// rest is what is left of the work on an event.
type rest struct {
	Store     string `json:"store"`
	Reference string `json:"reference"`
	mapping.Rest
}

// add adds what is left of a pass; nil: nothing.
func (u *Unfinished) add(e *event.Envelope, k *store.Copies, left *mapping.Rest) {
	if left == nil {
		return
	}
	text, err := json.Marshal(rest{k.Store, k.Reference, *left})
	if err != nil {
		panic(err) // bytes and texts
	}
	next := *e
	next.Object, next.ObjectOmitted, next.Previous, next.PreviousOmitted = nil, true, nil, true
	next.Ctx.Rest = string(text)
	*u = append(*u, &next)
}

func (u *Unfinished) orNil() error {
	if len(*u) == 0 {
		return nil
	}
	return u
}

// resume does a further part of the work on an event.
func (w *Worker) resume(ctx context.Context, e *event.Envelope) error {
	var from rest
	if err := json.Unmarshal([]byte(e.Ctx.Rest), &from); err != nil {
		return errs.Wrap(err, errs.Invalid, "the rest of the work on event %s can't be read", e.ID)
	}
	all := w.set.CopiesFrom(e.Store)
	at := slices.IndexFunc(all, func(k *store.Copies) bool {
		return k.Store == from.Store && k.Reference == from.Reference
	})
	if at < 0 {
		return nil // the configuration no longer has the copies
	}
	left, err := w.copier.Spread(store.WithCall(ctx, store.Call{Origin: Name}), all[at], e.UUID, from.Rest)
	if err != nil {
		return err
	}
	next := Unfinished{}
	next.add(e, all[at], left)
	return next.orNil()
}

// HandOver hands over the events of Unfinished. It returns other errors as they are.
func (w *Worker) HandOver(ctx context.Context, err error) error {
	var left *Unfinished
	if !errors.As(err, &left) {
		return err
	}
	for _, e := range *left {
		if err := w.handOver(ctx, e); err != nil {
			return err
		}
	}
	return nil
}
