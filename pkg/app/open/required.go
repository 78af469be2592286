package open

import (
	"context"
	"log/slog"

	"belfry/config"
	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/mapping/fill"
	"belfry/pkg/store"
)

// RequiredOf returns the options of the filler that requests depend on: it collects the claims of unique values, and
// builds indexes.
func RequiredOf(p *plan.Plan, set *store.Set, log *slog.Logger) fill.Options {
	return fill.Options{Works: fill.Required(set), Store: set.Store(config.PositionStore), Logger: log,
		Alone: !p.Shared(), Fills: true}
}

// CompleteClaims makes the claims that objects lack, for a command that writes to stores that no process serves.
func CompleteClaims(ctx context.Context, p *plan.Plan, set *store.Set) error {
	return fill.Complete(ctx, RequiredOf(p, set, slog.New(slog.DiscardHandler)))
}

// Refill starts a filler for another configuration once the previous one has ended.
func Refill(ctx context.Context, before *fill.Filler, o fill.Options) (*fill.Filler, part.Change, error) {
	ready := make(chan struct{})
	o.Ready = ready
	before.Hold()
	f, err := fill.Start(ctx, o)
	if err != nil {
		before.Resume()
		return nil, part.Change{}, err
	}
	cancel := func() {
		f.Close()
		before.Resume()
	}
	return f, part.Change{Apply: before.Yield, Cancel: cancel, Settle: func(context.Context) {
		before.Close()
		close(ready)
	}}, nil
}
