package mapping

import (
	"context"
	"errors"

	"belfry/listeners/rounds"
	"belfry/pkg/event"
)

// HandleSerially is Handle without batches: one array after another, in the
// caller's goroutine, so that a scheduler can order a worker's steps.
func (w *Worker) HandleSerially(ctx context.Context, e *event.Envelope) error {
	return w.HandleTogether(ctx, e, e.UUID)
}

// reconcile runs a round without a batch.
func (w *Worker) reconcile(ctx context.Context, k rounds.Key, sources []string, fence bool, onConflict func() error) error {
	turn, err := w.reconciler.Begin(ctx, k.Mapping, k.Target)
	if err != nil {
		return err
	}
	defer turn.End()
	return turn.Reconcile(ctx, sources, fence, onConflict)
}

// HandleTogether is HandleSerially with a batch: the event's object is handled together with these sources, in this
// order, as if events of them had arrived during a write. Events may be repeated, so each state that this leads to is
// one of the real worker, as long as no handler crashes: then the other sources' events would be redelivered.
func (w *Worker) HandleTogether(ctx context.Context, e *event.Envelope, sources ...string) error {
	keys, err := w.keys(ctx, e)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if err := w.reconcile(ctx, k, sources, awaited(e), nil); err != nil {
			return err
		}
	}
	return w.backfill(ctx, e)
}

// HandleAsking is HandleSerially for a worker of which others are asked for all rounds. ask has another process run a
// round.
func (w *Worker) HandleAsking(ctx context.Context, e *event.Envelope,
	ask func(ctx context.Context, target string, round func(context.Context) error) Waiter) error {
	keys, err := w.keys(ctx, e)
	if err != nil {
		return err
	}
	for _, k := range keys {
		round := func(ctx context.Context) error {
			return w.reconcile(ctx, k, []string{e.UUID}, awaited(e), nil)
		}
		if err := rounds.Settle(ctx, ask(ctx, k.Mapping.Array+" of "+k.Target, round), round); err != nil {
			return err
		}
	}
	return w.backfill(ctx, e)
}

// HandleAskingAfterConflicts is HandleAsking for a worker which begins rounds itself, and asks others for those that
// have a conflict.
func (w *Worker) HandleAskingAfterConflicts(ctx context.Context, e *event.Envelope,
	ask func(ctx context.Context, target string, round func(context.Context) error) Waiter) error {
	keys, err := w.keys(ctx, e)
	if err != nil {
		return err
	}
	for _, k := range keys {
		until := func(onConflict func() error) func(context.Context) error {
			return func(ctx context.Context) error {
				return w.reconcile(ctx, k, []string{e.UUID}, awaited(e), onConflict)
			}
		}
		err := until(func() error { return rounds.ErrForwarded })(ctx)
		if errors.Is(err, rounds.ErrForwarded) {
			here := until(nil)
			err = rounds.Settle(ctx, ask(ctx, k.Mapping.Array+" of "+k.Target, here), here)
		}
		if err != nil {
			return err
		}
	}
	return w.backfill(ctx, e)
}

// Waiter is a round that another process was asked for.
type Waiter = rounds.Waiter
