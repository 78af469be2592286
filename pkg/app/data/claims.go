package data

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"belfry/pkg/app/open"
	"belfry/pkg/app/part"
	"belfry/pkg/app/serving"
	"belfry/pkg/mapping/fill"
)

// Claims has stores with unique fields trust their claims, and makes those of existing objects. Every process does,
// whatever its role: writes are refused until somebody has. It does not wait for the rate of other fills.
type Claims struct {
	Log *slog.Logger

	filler atomic.Pointer[fill.Filler] // nil until it is started
}

// Part is how a process starts, changes and stops it.
func (c *Claims) Part() serving.Part {
	return serving.Part{Name: "collecting unique values", Start: c.start, Reload: c.reload, Check: c.incomplete, Stop: func(context.Context) error {
		if f := c.filler.Load(); f != nil {
			f.Close()
		}
		return nil
	}}
}

func (c *Claims) start(ctx context.Context, first *serving.Generation) error {
	f, err := fill.Start(ctx, open.ClaimsOf(first.Plan, first.Set, c.Log))
	c.filler.Store(f)
	return err
}

// reload collects the values of another configuration.
func (c *Claims) reload(ctx context.Context, _, next *serving.Generation) (part.Change, error) {
	f, change, err := open.Refill(ctx, c.filler.Load(), open.ClaimsOf(next.Plan, next.Set, c.Log))
	if err != nil {
		return part.Change{}, err
	}
	return change.Before(func() { c.filler.Store(f) }), nil
}

// incomplete lists the stores in which no object can get a unique value yet, for whoever asks whether belfry is
// ready.
func (c *Claims) incomplete() []string {
	var all []string
	for _, s := range c.filler.Load().Status() {
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
