package verify

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/mapping/aggregates"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/aggregate"
)

// aggregateCheck computes the aggregates of one mapping from its objects, of so many targets at a time as are to be in
// memory at once, and compares those that targets have. Targets that differ are computed again, from the objects that
// the index of the key has, until RecheckFor has passed.
type aggregateCheck struct {
	*verification
	m      *store.Mapping
	engine *aggregates.Engine

	mu       sync.Mutex // guards the following, and the report
	found    map[string][]Difference
	repaired map[string]bool
}

// aggregates verifies the aggregates of all mappings.
func (v *verification) aggregates(ctx context.Context) error {
	engine := aggregates.New(v.set, aggregates.Options{})
	for i := range v.set.Aggregating() {
		m := &v.set.Aggregating()[i]
		v.options.Tracker.reading(m)
		if m.Array == "" {
			v.report.Mappings++
		}
		c := &aggregateCheck{verification: v, m: m, engine: engine, found: map[string][]Difference{},
			repaired: map[string]bool{}}
		err := c.read(ctx)
		if err == nil {
			err = c.settle(ctx)
		}
		if err != nil {
			return errs.Wrap(err, errs.KindOf(err), "verifying the aggregates of %s", describe(m))
		}
	}
	return nil
}

// aggregateSize is how many arrays' tallies take about as much memory as the aggregates of a target.
const aggregateSize = 8

// expected are the tallies of the targets in a span, which becomes smaller when they would be more than most.
type expected struct {
	span
	most int
	of   map[store.Target]*aggregate.Tally
}

func (n *expected) add(target store.Target, v *aggregate.Values) {
	if !n.has(target.UUID) {
		return
	}
	t := n.of[target]
	if t == nil {
		t = &aggregate.Tally{}
		n.of[target] = t
	}
	if t.Add(v); len(n.of) <= n.most {
		return
	}
	uuids := make([]string, 0, len(n.of))
	for target := range n.of {
		uuids = append(uuids, target.UUID)
	}
	slices.Sort(uuids)
	if uuids = slices.Compact(uuids); len(uuids) == 1 { // a target that strangers of many owners name
		n.most *= 2
		return
	}
	n.to = uuids[len(uuids)-max(1, len(uuids)/shortenBy)]
	maps.DeleteFunc(n.of, func(target store.Target, _ *aggregate.Tally) bool { return !n.has(target.UUID) })
}

// read finds the targets that differ.
func (c *aggregateCheck) read(ctx context.Context) error {
	targets := newReader(ctx, c.set.Store(c.m.Target))
	defer targets.stop()
	for from, more := "", true; more; {
		want := &expected{span: span{from: from}, most: max(1, c.options.TargetsAtOnce/aggregateSize),
			of: map[store.Target]*aggregate.Tally{}}
		if err := pages(ctx, c.set.Store(c.m.Source), func(page []store.Stored) { c.add(page, want) }); err != nil {
			return err
		}
		for t, ok := targets.next(want.span); ok; t, ok = targets.next(want.span) {
			tally := want.of[c.m.TargetOf(t.UUID, t.Body)]
			if tally == nil {
				tally = &aggregate.Tally{}
			}
			if found := c.compare(t, aggregates.PropertiesOf(c.m, tally)); len(found) > 0 {
				c.found[t.UUID] = found
			}
			c.options.Tracker.targets.Add(1)
			if c.m.Array == "" {
				c.report.Targets++
			}
		}
		if targets.err != nil {
			return targets.err
		}
		from, more = want.to, want.to != ""
	}
	return nil
}

// add adds the objects of a page to the targets that they name.
func (c *aggregateCheck) add(page []store.Stored, want *expected) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range page {
		owner := c.m.SourceOf(x.UUID, x.Body)
		for _, uuid := range store.KeyTargets(object.Field(x.Body, c.m.Key)) {
			p := aggregates.Place{Mapping: c.m, Target: uuid, Owner: owner}
			if v := aggregates.Values(p, x.UUID, x.Body); v != nil {
				want.add(store.Target{UUID: uuid, Owner: owner}, v)
			}
		}
	}
	if want.from == "" {
		c.options.Tracker.objects.Add(int64(len(page)))
		if c.m.Array == "" {
			c.report.Objects += int64(len(page))
		}
	}
}

// compare returns the aggregates of a target that differ from those of its objects.
func (c *aggregateCheck) compare(t store.Stored, want object.Object) (found []Difference) {
	differ := func(property, detail string) {
		found = append(found, Difference{Kind: Wrong, Source: c.m.Source, Target: c.m.Target, Holder: t.UUID,
			Array: property, Detail: detail})
	}
	for _, a := range c.m.Aggregates {
		has := object.Field(t.Body, a.Property)
		if !bytes.Equal(has, want[a.Property]) {
			differ(a.Property, fmt.Sprintf("is %s, and by the objects %s", shown(has), shown(want[a.Property])))
		}
	}
	if len(found) == 0 && !c.set.Store(c.m.Target).Aggregates().IsCurrent(t.Body, c.m.Source) {
		differ(c.m.Aggregates[0].Property, "is not maintained yet: it was not computed of all objects")
	}
	return found
}

// shown is a value in a message.
func shown(value []byte) string {
	const most = 60
	switch {
	case value == nil:
		return "absent"
	case len(value) > most:
		return string(bytes.ToValidUTF8(value[:most], nil)) + "…"
	default:
		return string(value)
	}
}

// settle compares the targets that differ until they are right or RecheckFor has passed, and reports those that are
// left. With Repair it corrects them. Without the index of the key it reports them as they were read.
func (c *aggregateCheck) settle(ctx context.Context) error {
	c.options.Tracker.differ.Add(int64(len(c.found)))
	if indexed, err := c.set.Store(c.m.Source).FindsLinked(ctx, c.m.Key); err != nil {
		return err
	} else if !indexed {
		for _, target := range slices.Sorted(maps.Keys(c.found)) {
			for _, d := range c.found[target] {
				d.Detail += fmt.Sprintf("; it can be compared again and repaired when `belfry serve` has built the "+
					"index %s of %s", c.m.Key, c.m.Source)
				c.report.add([]Difference{d})
			}
		}
		return nil
	}
	deadline := time.Now().Add(c.options.RecheckFor)
	for delay := backoff.New(10*time.Millisecond, time.Second); len(c.found) > 0; {
		last := !time.Now().Before(deadline)
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(atOnce)
		for _, target := range slices.Collect(maps.Keys(c.found)) {
			g.Go(func() error { return c.compareAgain(gctx, target) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
		if last {
			break
		}
		if err := delay.Wait(ctx); err != nil {
			return err
		}
	}
	for _, target := range slices.Sorted(maps.Keys(c.found)) {
		c.report.add(c.found[target])
		delete(c.repaired, target)
	}
	c.report.Repaired += len(c.repaired)
	return nil
}

// compareAgain compares a target once more, and with Repair corrects it.
func (c *aggregateCheck) compareAgain(ctx context.Context, uuid string) error {
	found, err := c.differences(ctx, uuid)
	if err == nil && c.options.Repair && len(found) > 0 {
		call := store.Call{Origin: event.OriginAggregate}
		switch wrong := c.engine.Recount(store.WithCall(ctx, call), c.m, uuid); {
		case wrong == nil:
			c.options.Tracker.repaired.Add(1)
			c.mu.Lock()
			c.repaired[uuid] = true
			c.mu.Unlock()
			found, err = c.differences(ctx, uuid)
		case ctx.Err() != nil || errors.Is(wrong, errs.Unavailable) || errors.Is(wrong, errs.Canceled):
			err = wrong
		default:
			for i := range found {
				found[i].Detail = "it can't be repaired: " + wrong.Error()
			}
		}
	}
	if err != nil {
		return errs.Wrap(err, cmp.Or(errs.KindOf(err), errs.Internal), "verifying %s %s", c.m.Target, uuid)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.found[uuid] = found; len(found) == 0 {
		delete(c.found, uuid)
		c.options.Tracker.settled.Add(1)
	}
	return nil
}

func (c *aggregateCheck) differences(ctx context.Context, uuid string) ([]Difference, error) {
	t, err := c.set.Store(c.m.Target).Get(ctx, uuid)
	if errors.Is(err, errs.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	want, err := c.engine.Expected(ctx, c.m, c.m.TargetOf(t.UUID, t.Body))
	if err != nil {
		return nil, err
	}
	return c.compare(t, want), nil
}
