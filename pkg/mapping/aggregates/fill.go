package aggregates

import (
	"context"
	"errors"
	"maps"
	"slices"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/aggregate"
)

// pageSize is how many objects, or contributions, one query returns.
const pageSize = 500

// Fill applies every object that names a target, and every contribution to it, and then the properties of the target
// are those of all objects. A new target needs that, and one that is older than the mapping or than its latest change.
//
// It calls after with the number of objects that it has applied since the last call; an error of after ends it. The
// caller must repeat a Fill that fails or whose process ends, as an event would be redelivered.
func (e *Engine) Fill(ctx context.Context, m *store.Mapping, target string, after func(objects int) error) error {
	ctx = withOrigin(ctx)
	if err := backoff.Sleep(ctx, max(e.set.Store(m.Source).IndexLag(), lagOf(e.records(m)))); err != nil {
		return err
	}
	b := &fillBatches{Engine: e, m: m, target: target, after: after, next: map[string][]string{}}
	for x, err := range e.set.Store(m.Source).Linked(ctx, m.Key, target, pageSize) {
		if err == nil {
			err = b.add(ctx, m.SourceOf(x.UUID, x.Body), x.UUID)
		}
		if err != nil {
			return err
		}
	}
	if err := e.eachContribution(ctx, m, target, func(c aggregate.Contribution) error {
		return b.add(ctx, c.Owner, c.Object)
	}); err != nil {
		return err
	}
	if err := b.flush(ctx); err != nil {
		return err
	}
	base, err := e.set.Store(m.Target).Get(ctx, target)
	if err != nil && !errors.Is(err, errs.NotFound) {
		return err
	}
	p := Place{Mapping: m, Target: target, Owner: m.TargetOf(target, base.Body).Owner}
	return e.refresh(ctx, p, false, true, nil)
}

// eachContribution calls fn with the contributions to all accumulators of a target.
func (e *Engine) eachContribution(ctx context.Context, m *store.Mapping, target string,
	fn func(aggregate.Contribution) error) error {
	q := aggregate.Place{Source: m.Source, Target: target}.Contributions(pageSize)
	for {
		page, err := e.records(m).Query(ctx, q)
		if err != nil {
			return err
		}
		for _, record := range page.Records {
			c, err := aggregate.DecodeContribution(record.Body)
			if err == nil {
				err = fn(c)
			}
			if err != nil {
				return err
			}
		}
		if q.After = page.Next; q.After == nil {
			return nil
		}
	}
}

// fillBatches are the objects that a Fill has found and not applied, by owner.
type fillBatches struct {
	*Engine
	m      *store.Mapping
	target string
	after  func(objects int) error
	next   map[string][]string
	size   int
}

// add applies an object, together with others.
func (b *fillBatches) add(ctx context.Context, owner, source string) error {
	if b.m.SourceOwner != "" && owner == "" || !object.ValidUUID(source) {
		return nil // it contributes to nothing
	}
	b.next[owner] = append(b.next[owner], source)
	if b.size++; b.size < Batch {
		return nil
	}
	return b.flush(ctx)
}

// flush applies the objects that were added.
func (b *fillBatches) flush(ctx context.Context) error {
	for _, owner := range slices.Sorted(maps.Keys(b.next)) {
		p := Place{Mapping: b.m, Target: b.target, Owner: owner}
		if err := b.contribute(ctx, p, b.next[owner], false, nil); err != nil {
			return err
		}
	}
	done := b.size
	b.next, b.size = map[string][]string{}, 0
	if b.after == nil || done == 0 {
		return nil
	}
	return b.after(done)
}
