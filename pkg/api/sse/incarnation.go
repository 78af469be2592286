package sse

import (
	"context"
	"errors"
	"time"

	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
)

// ending is the end of an incarnation of an object.
type ending struct {
	object object.Object // the last state; nil: unknown
}

// endOf finds the end of the incarnation of an event; nil if it has not ended. now is the present or the last state of
// the object.
type endOf func(ctx context.Context, a *authorization, now object.Object) (*ending, error)

// endOf reads the deletion that follows the event in the log, which has it as long as it has the event.
func (h *Hub) endOf(ctx context.Context, a *authorization, now object.Object) (*ending, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	conn, subject := h.opts.Bus.Conn(), event.Subject(event.StoreDeleted, a.source.store.Name(), a.uuid)
	switch next, err := eventlog.Next(ctx, conn, subject, a.sequence); {
	case err == nil:
		return endingIn(next, a.revision), nil
	case !errors.Is(err, errs.NotFound):
		return nil, err
	}
	// An event may be published again, after the deletion that followed it.
	switch last, err := eventlog.Last(ctx, conn, subject); {
	case errors.Is(err, errs.NotFound):
	case err != nil:
		return nil, err
	default:
		if e, err := event.Decode(last.Data); err != nil || e.Revision >= a.revision {
			return &ending{}, nil
		}
	}
	// The deletion may not have been published yet.
	if text, ok := now.Text("created"); ok {
		if created, err := time.Parse(object.TimeFormat, text); err == nil && created.UnixMicro() > int64(a.revision) {
			return &ending{}, nil
		}
	}
	return nil, nil
}

// endingIn returns the end of the incarnation of an event in that of a deletion.
func endingIn(deletion *eventlog.Entry, revision uint64) *ending {
	e, err := event.Decode(deletion.Data)
	if err != nil || e.Revision < revision || len(e.Object) == 0 {
		return &ending{}
	}
	last, err := object.Decode(e.Object)
	if err != nil {
		return &ending{}
	}
	return &ending{last}
}
