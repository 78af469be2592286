package app

import (
	"context"
	"fmt"

	"belfry/pkg/app/open"
	"belfry/pkg/mapping/fill"
)

// startClaims has stores with unique fields trust their claims, and makes those of existing objects. Every process does,
// whatever its role: writes are refused until somebody has. It does not wait for the rate of other fills.
func (a *generation) startClaims(ctx context.Context) error {
	f, err := fill.Start(ctx, open.ClaimsOf(a.plan, a.set, a.log))
	if err != nil {
		return err
	}
	a.claims = f
	a.onStop("collecting unique values", func(context.Context) error { f.Close(); return nil })
	return nil
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
			all = append(all, fmt.Sprintf("the unique values of %s are being collected from its objects (%d of %d): new ones are refused until then", s.Target, s.Targets, s.Total))
		}
	}
	return all
}
