package aggregate

import (
	"context"

	"belfry/pkg/event"
	"belfry/pkg/mapping/aggregates"
)

// HandleSerially is Handle without batches and without what a worker remembers: one place after another, in the
// caller's goroutine, so that a scheduler can order a worker's steps.
func (w *Worker) HandleSerially(ctx context.Context, e *event.Envelope) error {
	return w.HandleTogether(ctx, e, e.UUID)
}

// HandleTogether is HandleSerially with a batch: the event's object is handled together with these sources.
func (w *Worker) HandleTogether(ctx context.Context, e *event.Envelope, sources ...string) error {
	engine := aggregates.New(w.set, aggregates.Options{AtOnce: 1})
	places, err := w.places(ctx, e)
	if err != nil {
		return err
	}
	for _, p := range places {
		if err := engine.Apply(ctx, p, sources, awaited(e), nil); err != nil {
			return err
		}
	}
	return w.target(ctx, engine, e)
}
