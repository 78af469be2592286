package app

import (
	"context"
	"fmt"

	"belfry/pkg/app/open"
	"belfry/pkg/app/part"
	"belfry/pkg/mapping/fill"
)

// startClaims has stores with unique fields trust their claims, and makes those of existing objects. Every process does,
// whatever its role: writes are refused until somebody has. It does not wait for the rate of other fills.
func (a *serving) startClaims(ctx context.Context) (err error) {
	a.claims, err = fill.Start(ctx, open.ClaimsOf(a.plan, a.set, a.log))
	return err
}

// claimsPart is the part that has stores trust their claims.
func claimsPart(a *App) part.Part[*serving] {
	return part.Part[*serving]{
		Name:  "collecting unique values",
		Start: func(ctx context.Context, first *serving) error { return first.startClaims(ctx) },
		Reload: func(ctx context.Context, before, next *serving) (part.Change, error) {
			o := open.ClaimsOf(next.plan, next.set, next.log)
			f, change, err := refill(ctx, before.claims, o)
			next.claims = f
			return change, err
		},
		Stop: func(context.Context) error {
			if claims := a.now().claims; claims != nil {
				claims.Close()
			}
			return nil
		},
		Check: a.incompleteClaims,
	}
}

// refill starts a filler beside the one of the configuration before, which has to end first. It must be closed if the change is
// canceled.
func refill(ctx context.Context, before *fill.Filler, o fill.Options) (*fill.Filler, part.Change, error) {
	ready := make(chan struct{})
	o.Ready = ready
	f, err := fill.Start(ctx, o)
	if err != nil {
		return nil, part.Change{}, err
	}
	return f, part.Change{Apply: before.Yield, Cancel: f.Close, Retire: func(context.Context) {
		before.Close()
		close(ready)
	}}, nil
}

// incompleteClaims lists the stores in which no object can get a unique value yet, for whoever asks whether belfry is
// ready.
func (a *App) incompleteClaims() []string {
	claims := a.now().claims
	if claims == nil {
		return nil
	}
	var all []string
	for _, s := range claims.Status() {
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
