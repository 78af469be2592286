package open

import (
	"context"
	"log/slog"

	"belfry/config"
	"belfry/pkg/app/plan"
	"belfry/pkg/mapping/fill"
	"belfry/pkg/store"
)

// RequiredOf returns the options of the filler that requests depend on: it collects the claims of unique values, and
// builds indexes.
func RequiredOf(p *plan.Plan, set *store.Set, log *slog.Logger) fill.Options {
	return fill.Options{Works: fill.Required(set), Store: set.Store(config.PositionStore), Logger: log, Alone: !p.Shared(), Fills: true}
}

// CompleteClaims makes the claims that objects lack, for a command that writes to stores that no process serves.
func CompleteClaims(ctx context.Context, p *plan.Plan, set *store.Set) error {
	return fill.Complete(ctx, RequiredOf(p, set, slog.New(slog.DiscardHandler)))
}
