package aggregate

import (
	"context"
	"errors"

	"belfry/listeners/rounds"
	"belfry/pkg/event"
	"belfry/pkg/mapping/aggregates"
	"belfry/pkg/store"
)

// forgetful is an engine that remembers nothing of rounds before.
func forgetful(set *store.Set) *aggregates.Engine {
	return aggregates.New(set, aggregates.Options{AtOnce: 1})
}

// HandleSerially is Handle without batches and without what a worker remembers: one place after another, in the
// caller's goroutine, so that a scheduler can order a worker's steps.
func (w *Worker) HandleSerially(ctx context.Context, e *event.Envelope) error {
	return w.HandleTogether(ctx, e, e.UUID)
}

// HandleTogether is HandleSerially with a batch: the event's object is handled together with these sources.
func (w *Worker) HandleTogether(ctx context.Context, e *event.Envelope, sources ...string) error {
	engine := forgetful(w.set)
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

// HandleAsking is HandleSerially for a worker which begins rounds itself, and asks others for those that have a
// conflict; with always for all. ask has another process run a round.
func (w *Worker) HandleAsking(ctx context.Context, e *event.Envelope, always bool,
	ask func(ctx context.Context, target string, round func(context.Context) error) rounds.Waiter) error {
	places, err := w.places(ctx, e)
	if err != nil {
		return err
	}
	for _, p := range places {
		until := func(onConflict func() error) func(context.Context) error {
			return func(ctx context.Context) error {
				return forgetful(w.set).Apply(ctx, p, []string{e.UUID}, awaited(e), onConflict)
			}
		}
		err := rounds.ErrForwarded
		if !always {
			err = until(func() error { return rounds.ErrForwarded })(ctx)
		}
		if errors.Is(err, rounds.ErrForwarded) {
			here := until(nil)
			err = rounds.Settle(ctx, ask(ctx, p.Target, here), here)
		}
		if err != nil {
			return err
		}
	}
	return w.target(ctx, forgetful(w.set), e)
}
