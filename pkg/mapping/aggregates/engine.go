// Package aggregates maintains aggregates: properties of an object that are counts, sums, least and greatest values
// over all objects that name it. The cost of a change does not grow with their number.
//
// Each object that names a target has a contribution, and the target has an accumulator of all of them: see package
// store/aggregate. An Engine makes contributions match the objects as they are now, and the properties of targets match
// the contributions. So it can run at any time, any number of times, in any order and by any number of workers at once.
// docs/mapping.md has the protocol, and the argument that aggregates converge.
package aggregates

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/aggregate"
	"belfry/pkg/store/driver"
)

// Batch is how many objects one write of an accumulator counts at most. It bounds the size of the accumulator, which
// has the changes of the last write.
const Batch = 256

const (
	atOnce     = 64     // reads and writes of one batch: a backend may sync once for all that are made at once
	maxSettled = 10_000 // accumulators that an Engine remembers
)

// Options configure an Engine.
type Options struct {
	// OnAbsent is called when a property is left out because its exact value can't be computed; may be nil.
	OnAbsent func(m *store.Mapping, property string)

	AtOnce int // reads and writes of one batch; 0: 64
}

// Engine maintains aggregates. It is safe for concurrent use, also by several processes on the same stores.
type Engine struct {
	set      *store.Set
	onAbsent func(m *store.Mapping, property string)
	atOnce   int

	mu      sync.Mutex
	settled map[string]uint64 // the revisions of accumulators whose changes are all made
}

// New returns an engine for the stores of a set.
func New(set *store.Set, o Options) *Engine {
	if o.OnAbsent == nil {
		o.OnAbsent = func(*store.Mapping, string) {}
	}
	if o.AtOnce == 0 {
		o.AtOnce = atOnce
	}
	return &Engine{set: set, onAbsent: o.OnAbsent, atOnce: o.AtOnce, settled: map[string]uint64{}}
}

// Place is an accumulator of a target: that of all objects which name it, or of those with an owner.
type Place struct {
	Mapping *store.Mapping
	Target  string
	Owner   string // "" if the mapping does not ask for it
}

func (p Place) of() aggregate.Place {
	return aggregate.Place{Source: p.Mapping.Source, Target: p.Target, Owner: p.Owner}
}

// Apply makes what these objects contribute to a place match the objects as they are now, and then the properties of
// the target match the contributions. The error is a store's, or the context's.
//
// With fence, no round that has begun before can bring back an older state of these objects once this one returns: a
// request that waits for the aggregates of its write needs it.
//
// If another process has written the accumulator or the target during a round, the round is repeated, unless onConflict
// returns an error, which is then returned. onConflict may be nil.
func (e *Engine) Apply(ctx context.Context, p Place, sources []string, fence bool, onConflict func() error) error {
	ctx = withOrigin(ctx)
	if err := e.contribute(ctx, p, sources, fence, onConflict); err != nil {
		return err
	}
	return e.refresh(ctx, p, fence, false, onConflict)
}

// Refresh makes the properties of a target match the contributions.
func (e *Engine) Refresh(ctx context.Context, p Place, fence bool) error {
	return e.refresh(withOrigin(ctx), p, fence, false, nil)
}

// withOrigin sets the origin of a context's operations, by which listeners ignore what they cause.
func withOrigin(ctx context.Context) context.Context {
	call := store.CallOf(ctx)
	call.Origin = event.OriginAggregate
	return store.WithCall(ctx, call)
}

// again reports whether a step is to be repeated after an error, which it was if another one has written.
func again(ctx context.Context, err error, onConflict func() error) (repeat bool, fatal error) {
	if !errors.Is(err, errs.Mismatch) {
		return false, err
	}
	if onConflict != nil {
		if err := onConflict(); err != nil {
			return false, err
		}
	}
	return true, ctx.Err()
}

// each calls do for numbers below n, some at once.
func (e *Engine) each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	if n == 1 || e.atOnce == 1 {
		for i := range n {
			if err := do(ctx, i); err != nil {
				return err
			}
		}
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(e.atOnce)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// records returns the driver's store of the accumulators and contributions of a mapping.
func (e *Engine) records(m *store.Mapping) driver.Store {
	return e.set.Store(m.Target).Aggregates().Records()
}

// nextRevision is that of a write after another one.
func (e *Engine) nextRevision(m *store.Mapping, before uint64) uint64 {
	return max(store.RevisionAt(e.set.Store(m.Target).Now()), before+1)
}

// body reads a source object; nil if it does not exist.
func (e *Engine) body(ctx context.Context, m *store.Mapping, source string) ([]byte, error) {
	if !object.ValidUUID(source) {
		return nil, nil
	}
	x, err := e.set.Store(m.Source).Get(ctx, source)
	if errors.Is(err, errs.NotFound) {
		return nil, nil
	}
	return x.Body, err
}

// values is what an object, as it is now, contributes to a place; nil for nothing.
func (e *Engine) values(ctx context.Context, p Place, source string) (*aggregate.Values, error) {
	body, err := e.body(ctx, p.Mapping, source)
	if err != nil {
		return nil, err
	}
	return Values(p, source, body), nil
}

// Values is what an encoded object contributes to a place; nil for nothing. body is nil if it does not exist.
func Values(p Place, source string, body []byte) *aggregate.Values {
	m := p.Mapping
	if !m.Counts(source, body, store.Target{UUID: p.Target, Owner: p.Owner}) {
		return nil
	}
	return aggregate.NewValues(body, m.Summed(), m.Ordered())
}
