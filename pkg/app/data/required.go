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
	"belfry/pkg/walk"
)

// Required updates the derived data that requests depend on: it creates the claims of existing objects, lets stores use
// these claims, and builds indexes. It runs in processes of every role, because requests
// are refused, and two objects can get one value, until a process has done this work. It is exempt from the rate of
// other fills.
type Required struct {
	Log *slog.Logger

	filler atomic.Pointer[fill.Filler] // nil until it is started
}

// Part returns the functions that start, reload and stop it.
func (r *Required) Part() serving.Part {
	return serving.Part{
		Name: "unique values and indexes", Start: r.start, Reload: r.reload, Check: r.incomplete,
		Stop: func(context.Context) error {
			if f := r.filler.Load(); f != nil {
				f.Close()
			}
			return nil
		},
	}
}

func (r *Required) start(ctx context.Context, first *serving.Generation) error {
	f, err := fill.Start(ctx, open.RequiredOf(first.Plan, first.Set, r.Log))
	r.filler.Store(f)
	return err
}

// reload applies another configuration.
func (r *Required) reload(ctx context.Context, _, next *serving.Generation) (part.Change, error) {
	f, change, err := open.Refill(ctx, r.filler.Load(), open.RequiredOf(next.Plan, next.Set, r.Log))
	if err != nil {
		return part.Change{}, err
	}
	return change.Before(func() { r.filler.Store(f) }), nil
}

// Walks returns the progress of collecting the values of stores, and of building their indexes.
func (r *Required) Walks() []walk.Status { return r.filler.Load().Status() }

// incomplete lists the work that requests wait for, for the readiness check.
func (r *Required) incomplete() (all []string) {
	for _, s := range r.Walks() {
		switch {
		case s.Filled:
		case s.Kind == walk.Index:
			all = append(all, building(s))
		default:
			all = append(all, collecting(s))
		}
	}
	return all
}

func collecting(s walk.Status) string {
	means := "two objects can get one value until then, and the log names them"
	if s.Refuses {
		means = "new ones are refused until then"
	}
	switch {
	case s.Waiting && !s.Others:
		return "the unique values of " + s.Store + " are collected once it is known that no process with another " +
			"configuration runs, within half a minute: " + means
	case s.Waiting:
		return "the unique values of " + s.Store + " are collected once all processes have the same configuration: " +
			means
	default:
		return fmt.Sprintf("the unique values of %s are being collected from its objects (%d of %d): %s",
			s.Store, s.Done, s.Total, means)
	}
}

func building(s walk.Status) string {
	switch {
	case s.Waiting && !s.Others:
		return "indexes of " + s.Store +
			" are built once it is known that no process with another configuration runs, " +
			"within half a minute: lists that need them are refused until then"
	case s.Waiting:
		return "indexes of " + s.Store + " are built once all processes have the same configuration: lists that need " +
			"them are refused until then"
	default:
		return fmt.Sprintf("indexes of %s are being built (%d of %d objects): lists that need them are refused "+
			"until then",
			s.Store, s.Done, s.Total)
	}
}
