package app

import (
	"context"
	"fmt"
	"log/slog"

	"belfry/config"
	"belfry/pkg/mapping/fill"
	"belfry/pkg/store"
)

// startClaims has stores with unique fields trust their claims, and makes those of existing objects. Every process does,
// whatever its role: writes are refused until somebody has. It does not wait for the rate of other fills.
func (a *serving) startClaims(ctx context.Context) error {
	f, err := fill.Start(ctx, a.plan.claimsOf(a.set, a.log))
	if err != nil {
		return err
	}
	a.claims = f
	a.onStop("collecting unique values", func(context.Context) error { f.Close(); return nil })
	return nil
}

func (p *plan) claimsOf(set *store.Set, log *slog.Logger) fill.Options {
	return fill.Options{Works: fill.Claims(set), Store: set.Store(config.PositionStore), Logger: log, Alone: !p.shared(), Fills: true}
}

// completeClaims makes the claims that objects lack, for a command that writes to stores that nobody serves.
func (p *plan) completeClaims(ctx context.Context, set *store.Set) error {
	return fill.Complete(ctx, p.claimsOf(set, slog.New(slog.DiscardHandler)))
}

// incompleteClaims lists the stores in which no object can get a unique value yet, for whoever asks whether belfry is
// ready.
func (a *App) incompleteClaims() []string {
	if a.claims == nil {
		return nil
	}
	var all []string
	for _, s := range a.claims.Status() {
		switch {
		case s.Filled:
		case s.Waiting && !s.Others:
			all = append(all, "new unique values of "+s.Target+" are refused until it is known that no process with another configuration runs, within half a minute, and the values of its objects are collected")
		case s.Waiting:
			all = append(all, "new unique values of "+s.Target+" are refused until all processes have the same configuration, and the values of its objects are collected")
		default:
			all = append(all, fmt.Sprintf("the unique values of %s are being collected from its objects (%d of %d): new ones are refused until then", s.Target, s.Done, s.Total))
		}
	}
	return all
}
