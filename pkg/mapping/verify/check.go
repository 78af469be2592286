package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"belfry/pkg/errs"
	"belfry/pkg/mapping"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

const (
	pageSize = 500
	atOnce   = 16 // targets that are read, compared or repaired at once
)

// check reads the objects of one mapping, in two passes that keep one number for
// each target in memory: the objects that name a target are counted, and the entries
// of every array are compared with their objects. An array is correct if all its
// entries match, without duplicates, and they are as many as the objects. The
// others are candidates, which are compared with all their objects.
type check struct {
	set        *store.Set
	m          *store.Mapping
	reconciler *mapping.Reconciler
	report     *Report
	tracker    *Tracker

	named map[store.Target]int // target → objects that name it, with their owner if the mapping asks for that

	mu         sync.Mutex          // guards what follows, and the report, in compareArrays
	candidates map[string][]string // target → objects that name it
}

// run returns the candidates.
func (c *check) run(ctx context.Context) ([]*candidate, error) {
	c.named, c.candidates = map[store.Target]int{}, map[string][]string{}
	if err := c.countNames(ctx); err != nil {
		return nil, err
	}
	if c.m.Array != "" {
		if err := c.compareArrays(ctx); err != nil {
			return nil, err
		}
	}
	if err := c.findDeleted(ctx); err != nil {
		return nil, err
	}
	if err := c.collectSources(ctx); err != nil {
		return nil, err
	}
	var all []*candidate
	for _, target := range slices.Sorted(maps.Keys(c.candidates)) {
		all = append(all, &candidate{check: c, target: target, sources: c.candidates[target]})
	}
	return all, nil
}

// scan calls fn with every object of a store.
func (c *check) scan(ctx context.Context, name string, fn func(store.Stored) error) error {
	for o, err := range c.set.Store(name).All(ctx, pageSize) {
		if err != nil {
			return err
		}
		if err := fn(o); err != nil {
			return err
		}
	}
	return nil
}

func (c *check) names(x store.Stored) []string {
	return store.KeyTargets(object.Field(x.Body, c.m.Key))
}

func (c *check) countNames(ctx context.Context) error {
	return c.scan(ctx, c.m.Source, func(x store.Stored) error {
		c.tracker.objects.Add(1)
		if c.m.Array != "" {
			c.report.Objects++
		}
		hidden := c.m.Array != "" && c.m.Hides(x.Body)
		for _, uuid := range c.names(x) {
			target := store.Target{UUID: uuid, Owner: c.m.SourceOf(x.UUID, x.Body)}
			if !c.m.Owned(x.UUID, x.Body, target) {
				continue // it has no owner
			}
			if hidden {
				c.named[target] += 0 // a cascade deletes it all the same
				continue
			}
			if c.m.Array != "" && c.m.TooLarge(x.UUID, x.Body, target) {
				c.addTooLarge(x.UUID, uuid)
				c.named[target] += 0 // a cascade deletes it all the same
				continue
			}
			c.named[target]++
		}
		return nil
	})
}

// addTooLarge adds an object whose entry is too large to the report.
func (c *check) addTooLarge(uuid, target string) {
	if len(c.report.TooLarge) < MaxDifferences {
		c.report.TooLarge = append(c.report.TooLarge, TooLarge{
			Source: c.m.Source, UUID: uuid, Target: c.m.Target, Holder: target, Array: c.m.Array, Limit: c.m.MaxEntry,
		})
	}
}

// compareArrays reads every target. The targets that remain in named do not
// exist.
func (c *check) compareArrays(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	err := c.scan(gctx, c.m.Target, func(t store.Stored) error {
		target := c.m.TargetOf(t.UUID, t.Body)
		named := c.named[target]
		delete(c.named, target)
		g.Go(func() error {
			found, entries, size, err := c.compare(gctx, t)
			if err == nil {
				c.count(t.UUID, named, len(found), entries, size)
			}
			return err
		})
		return nil
	})
	if failed := g.Wait(); failed != nil {
		return failed // which ended the scan too
	}
	return err
}

// count adds a target to the report, and to the candidates if its array differs.
func (c *check) count(target string, named, differences, entries, size int) {
	c.tracker.targets.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Targets++
	c.report.Entries += int64(entries)
	full := c.m.Full(entries, size)
	if differences > 0 || entries > named || entries < named && !full || c.m.Exceeds(entries, size) {
		c.candidates[target] = []string{}
	}
	if full && named > entries {
		c.report.Full = append(c.report.Full, Full{
			Target: c.m.Target, Holder: target, Array: c.m.Array, Limit: c.m.Limit, Entries: entries, Bytes: size, Objects: named,
		})
	}
}

// findDeleted finds the targets that do not exist, although objects name them, because
// they were deleted: where the mapping cascades the objects are deleted too.
func (c *check) findDeleted(ctx context.Context) error {
	if !c.m.Cascade {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for target := range c.named {
		g.Go(func() error {
			_, deleted, err := c.set.Store(c.m.Target).Deleted(ctx, target.UUID)
			if deleted {
				c.mu.Lock()
				c.candidates[target.UUID] = []string{}
				c.mu.Unlock()
			}
			return err
		})
	}
	return g.Wait()
}

// collectSources finds the objects that name candidates, without the index.
func (c *check) collectSources(ctx context.Context) error {
	if len(c.candidates) == 0 {
		return nil
	}
	return c.scan(ctx, c.m.Source, func(x store.Stored) error {
		for _, target := range c.names(x) {
			if sources, ok := c.candidates[target]; ok {
				c.candidates[target] = append(sources, x.UUID)
			}
		}
		return nil
	})
}

// compare compares the entries that a target has with their objects.
func (c *check) compare(ctx context.Context, t store.Stored) (found []Difference, entries, size int, err error) {
	value := object.Field(t.Body, c.m.Array)
	if value != nil && value[0] != '[' {
		return []Difference{c.difference(Malformed, t.UUID, "", "the property is not an array")}, 0, 0, nil
	}
	seen, target := map[string]bool{}, c.m.TargetOf(t.UUID, t.Body)
	object.Elements(value, func(entry []byte) bool {
		entries++
		size += len(entry) + 1
		uuid, ok := object.Text(object.Field(entry, "uuid"))
		switch {
		case !ok:
			found = append(found, c.difference(Malformed, t.UUID, "", "an entry has no uuid"))
			return true
		case seen[uuid]:
			found = append(found, c.difference(Duplicate, t.UUID, uuid, ""))
			return true
		}
		seen[uuid] = true
		var x store.Stored
		if x, err = c.source(ctx, uuid); err != nil {
			return false
		}
		switch want := c.m.Entry(uuid, x.Body, target); {
		case want == nil:
			found = append(found, c.difference(Extra, t.UUID, uuid, c.whyNone(x, t)))
		case !bytes.Equal(want, entry):
			found = append(found, c.difference(Wrong, t.UUID, uuid, "the entry's fields are not the object's"))
		}
		return true
	})
	return found, entries, size, err
}

// whyNone says why an object has no entry, where it names the target and yet has none.
func (c *check) whyNone(x, t store.Stored) string {
	switch {
	case x.Body == nil || !mapping.Names(c.m, x, t.UUID):
		return ""
	case !c.m.Owned(x.UUID, x.Body, c.m.TargetOf(t.UUID, t.Body)):
		return "the object has not the owner of the target"
	case c.m.Hides(x.Body):
		return "the mapping's condition does not hold for the object"
	default:
		return ""
	}
}

// source reads an object; the zero Stored when there is none.
func (c *check) source(ctx context.Context, uuid string) (store.Stored, error) {
	x, err := c.set.Store(c.m.Source).Get(ctx, uuid)
	if errors.Is(err, errs.NotFound) {
		return store.Stored{}, nil
	}
	return x, err
}

func (c *check) difference(k Kind, holder, uuid, detail string) Difference {
	return Difference{Kind: k, Source: c.m.Source, UUID: uuid, Target: c.m.Target, Holder: holder, Array: c.m.Array, Detail: detail}
}

// differences compares one target with the objects known to name it.
func (c *check) differences(ctx context.Context, target string, sources []string) ([]Difference, error) {
	if c.m.Array == "" {
		return c.undeleted(ctx, target, sources)
	}
	t, err := c.set.Store(c.m.Target).Get(ctx, target)
	if errors.Is(err, errs.NotFound) {
		return c.undeleted(ctx, target, sources)
	}
	if err != nil {
		return nil, err
	}
	found, entries, size, err := c.compare(ctx, t)
	if c.m.Exceeds(entries, size) {
		detail := fmt.Sprintf("%d entries with %d bytes are more than its limits of %d entries and %d bytes", entries, size, c.m.Limit, c.m.MaxBytes)
		found = append(found, c.difference(Extra, target, "", detail))
	}
	if err != nil || c.m.Full(entries, size) {
		return found, err
	}
	has := map[string]bool{}
	object.Elements(object.Field(t.Body, c.m.Array), func(entry []byte) bool {
		uuid, _ := object.Text(object.Field(entry, "uuid"))
		has[uuid] = true
		return true
	})
	for _, uuid := range sources {
		if has[uuid] {
			continue
		}
		x, err := c.source(ctx, uuid)
		if err != nil {
			return nil, err
		}
		if c.m.Entry(uuid, x.Body, c.m.TargetOf(target, t.Body)) != nil {
			found = append(found, c.difference(Missing, target, uuid, ""))
		}
	}
	return found, nil
}

// undeleted finds objects that the cascade of a deleted target did not delete.
func (c *check) undeleted(ctx context.Context, target string, sources []string) ([]Difference, error) {
	t, deleted, err := c.set.Store(c.m.Target).Deleted(ctx, target)
	if err != nil || !deleted || !c.m.Cascade {
		return nil, err
	}
	var found []Difference
	for _, uuid := range sources {
		x, err := c.source(ctx, uuid)
		if err != nil {
			return nil, err
		}
		if x.Body != nil && mapping.IsOrphan(c.m, x, target, t) {
			found = append(found, c.difference(Undeleted, target, uuid, "its target was deleted"))
		}
	}
	return found, nil
}
