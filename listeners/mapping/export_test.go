package mapping

import (
	"context"

	"belfry/pkg/event"
)

// HandleSerially is Handle without batches: one array after another, by the
// goroutine that calls. It is how a scheduler can order a worker's steps.
func (w *Worker) HandleSerially(ctx context.Context, e *event.Envelope) error {
	if e.Origin == Name {
		return nil
	}
	groups, err := w.groups(ctx, e)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if err := w.keep(ctx, g, []string{e.UUID}); err != nil {
			return err
		}
	}
	return w.fill(ctx, e)
}
