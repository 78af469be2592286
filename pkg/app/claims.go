package app

import (
	"context"
	"log/slog"

	"belfry/config"
	"belfry/pkg/claims"
	"belfry/pkg/store"
)

// startClaims has stores with unique fields collect the values of their objects.
func (a *serving) startClaims(ctx context.Context) error {
	h, err := claims.Start(ctx, a.plan.claimsOf(a.set, a.log))
	if err != nil {
		return err
	}
	a.claims = h
	a.onStop("collecting unique values", func(context.Context) error { h.Close(); return nil })
	return nil
}

func (p *plan) claimsOf(set *store.Set, log *slog.Logger) claims.Options {
	return claims.Options{Set: set, State: set.Store(config.PositionStore), Logger: log, Alone: !p.shared()}
}

// completeClaims makes the claims that objects lack, for a command that writes to stores that nobody serves.
func (p *plan) completeClaims(ctx context.Context, set *store.Set) error {
	return claims.Complete(ctx, p.claimsOf(set, slog.New(slog.DiscardHandler)))
}

// incompleteClaims lists the stores in which no object can get a unique value yet, for whoever asks whether belfry is
// ready.
func (a *App) incompleteClaims() []string {
	if a.claims == nil {
		return nil
	}
	var all []string
	for _, name := range a.claims.Incomplete() {
		all = append(all, "the unique values of "+name+" are being collected from its objects: new ones are refused until then")
	}
	return all
}
