package app

import (
	"context"
	"fmt"
	"log/slog"

	"belfry/pkg/app/open"
	"belfry/pkg/mapping/fill"
)

// claims has stores with unique fields trust their claims, and makes those of existing objects. Every process does,
// whatever its role: writes are refused until somebody has. It does not wait for the rate of other fills.
type claims struct {
	log *slog.Logger

	filler *fill.Filler // nil until it is started
}

// part is the part of a process.
func (c *claims) part() servedPart {
	return servedPart{Name: "collecting unique values", Start: c.start, Check: c.incomplete, Stop: func(context.Context) error {
		if c.filler != nil {
			c.filler.Close()
		}
		return nil
	}}
}

func (c *claims) start(ctx context.Context, first *generation) (err error) {
	c.filler, err = fill.Start(ctx, open.ClaimsOf(first.plan, first.set, c.log))
	return err
}

// incomplete lists the stores in which no object can get a unique value yet, for whoever asks whether belfry is
// ready.
func (c *claims) incomplete() []string {
	var all []string
	for _, s := range c.filler.Status() {
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
