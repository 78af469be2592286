package mapping

import (
	"context"
	"errors"

	"belfry/pkg/event"
	"belfry/pkg/store"
)

// HandleSerially is Handle without batches: one array after another, in the
// caller's goroutine, so that a scheduler can order a worker's steps.
func (w *Worker) HandleSerially(ctx context.Context, e *event.Envelope) error {
	return w.HandleTogether(ctx, e, e.UUID)
}

// reconcile runs a round without a batch.
func (w *Worker) reconcile(ctx context.Context, g group, sources []string, fence bool, onConflict func() error) error {
	turn, err := w.await(ctx, g)
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
	groups, err := w.groups(ctx, e)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if err := w.reconcile(ctx, g, sources, awaited(e), nil); err != nil {
			return err
		}
	}
	return w.backfill(ctx, e)
}

// HandleAsking is HandleSerially for a worker of which others are asked for all rounds. ask has another process run a
// round.
func (w *Worker) HandleAsking(ctx context.Context, e *event.Envelope,
	ask func(ctx context.Context, target string, round func(context.Context) error) Waiter) error {
	groups, err := w.groups(ctx, e)
	if err != nil {
		return err
	}
	for _, g := range groups {
		round := func(ctx context.Context) error {
			return w.reconcile(ctx, g, []string{e.UUID}, awaited(e), nil)
		}
		if err := settle(ctx, ask(ctx, g.mapping.Array+" of "+g.target, round), round); err != nil {
			return err
		}
	}
	return w.backfill(ctx, e)
}

// HandleAskingAfterConflicts is HandleAsking for a worker which begins rounds itself, and asks others for those that
// have a conflict.
func (w *Worker) HandleAskingAfterConflicts(ctx context.Context, e *event.Envelope,
	ask func(ctx context.Context, target string, round func(context.Context) error) Waiter) error {
	groups, err := w.groups(ctx, e)
	if err != nil {
		return err
	}
	for _, g := range groups {
		until := func(onConflict func() error) func(context.Context) error {
			return func(ctx context.Context) error {
				return w.reconcile(ctx, g, []string{e.UUID}, awaited(e), onConflict)
			}
		}
		err := until(func() error { return errForwarded })(ctx)
		if errors.Is(err, errForwarded) {
			here := until(nil)
			err = settle(ctx, ask(ctx, g.mapping.Array+" of "+g.target, here), here)
		}
		if err != nil {
			return err
		}
	}
	return w.backfill(ctx, e)
}

// Waiter is a round that another process was asked for.
type Waiter = waiter

// Waiting returns how many events wait for the next write to an array.
func (w *Worker) Waiting(m *store.Mapping, target string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b := w.next[group{m, target}]; b != nil {
		return len(b.sources)
	}
	return 0
}

// Contend has a worker take the array of a target for contended, as after a conflict.
func (w *Worker) Contend(m *store.Mapping, target string) { w.contended.add(group{m, target}) }

// Contended returns how many arrays a worker takes for contended.
func (w *Worker) Contended() int {
	w.contended.mu.Lock()
	defer w.contended.mu.Unlock()
	return len(w.contended.until)
}

// Forget has a worker take no array for contended.
func (w *Worker) Forget() {
	w.contended.mu.Lock()
	defer w.contended.mu.Unlock()
	clear(w.contended.until)
	clear(w.contended.mappings)
}
