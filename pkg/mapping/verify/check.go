package verify

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"belfry/pkg/errs"
	"belfry/pkg/mapping"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// atOnce is how many targets are read, compared or repaired at once.
const atOnce = 16

// check reads the objects of one mapping. It has a tally of each target in memory, of so many at most: for each span of
// targets it reads all objects, and then the arrays. An array that has the tally of the objects that name its target is
// correct. The others are candidates, which are compared with all their objects.
type check struct {
	set        *store.Set
	m          *store.Mapping
	reconciler *mapping.Reconciler
	report     *Report
	tracker    *Tracker
	most       int // targets in memory at once
	seed       maphash.Seed

	// guards the following fields, the tallies and the report, while pages or targets are in use
	mu         sync.Mutex
	candidates map[string][]string // target → objects that name it
	unnamed    Unnamed
}

// run returns the candidates.
func (c *check) run(ctx context.Context) ([]*candidate, error) {
	c.seed, c.candidates = maphash.MakeSeed(), map[string][]string{}
	targets := newReader(ctx, c.set.Store(c.m.Target))
	defer targets.stop()
	for from, more := "", true; more; {
		named := newTallies(from, c.most)
		if err := c.tallyObjects(ctx, named); err != nil {
			return nil, err
		}
		if c.m.Array != "" {
			if err := c.compareArrays(ctx, targets, named); err != nil {
				return nil, err
			}
		}
		if err := c.findDeleted(ctx, named); err != nil {
			return nil, err
		}
		from, more = named.to, named.to != ""
	}
	if c.unnamed.Objects > 0 {
		c.unnamed.Source, c.unnamed.Key, c.unnamed.Target = c.m.Source, c.m.Key, c.m.Target
		c.report.Unnamed = append(c.report.Unnamed, c.unnamed)
	}
	if err := c.collectSources(ctx); err != nil {
		return nil, err
	}
	var all []*candidate
	for _, target := range slices.Sorted(maps.Keys(c.candidates)) {
		all = append(all,
			&candidate{check: c, target: target, sources: slices.Sorted(slices.Values(c.candidates[target]))})
	}
	return all, nil
}

func (c *check) names(x store.Stored) []string {
	return store.KeyTargets(object.Field(x.Body, c.m.Key))
}

// tallyObjects reads all objects, for the targets in a span, which becomes smaller if there are too many.
func (c *check) tallyObjects(ctx context.Context, named *tallies) error {
	err := pages(ctx, c.set.Store(c.m.Source), func(page []store.Stored) { c.tallyPage(page, named) })
	slices.SortFunc(named.tooLarge, func(a, b naming) int {
		return cmp.Or(cmp.Compare(a.target.UUID, b.target.UUID), cmp.Compare(a.source, b.source))
	})
	for _, x := range named.tooLarge[:min(len(named.tooLarge), MaxDifferences-len(c.report.TooLarge))] {
		c.report.TooLarge = append(c.report.TooLarge, TooLarge{
			Source: c.m.Source, UUID: x.source, Target: c.m.Target, Holder: x.target.UUID, Array: c.m.Array,
			Limit: c.m.MaxEntry,
		})
	}
	return err
}

func (c *check) tallyPage(page []store.Stored, named *tallies) {
	c.mu.Lock()
	in := named.span // which can become smaller meanwhile
	c.mu.Unlock()
	all := make([]naming, 0, len(page))
	for _, x := range page {
		all = c.appendNamings(all, x, in)
	}
	unnamed := c.unnamedIn(page)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range all {
		named.add(x)
	}
	if in.from != "" {
		return // the page was counted when it was read for the first span
	}
	c.unnamed.add(unnamed)
	c.tracker.objects.Add(int64(len(page)))
	if c.m.Array != "" {
		c.report.Objects += int64(len(page))
	}
}

// appendNamings appends the targets in a span that an object names. A cascade deletes the object even if it has no
// entry.
func (c *check) appendNamings(all []naming, x store.Stored, in span) []naming {
	uuids := slices.DeleteFunc(c.names(x), func(uuid string) bool { return !in.has(uuid) })
	owner := c.m.SourceOf(x.UUID, x.Body)
	if len(uuids) == 0 || !c.m.Owned(x.UUID, x.Body, store.Target{Owner: owner}) { // it has no owner
		return all
	}
	n := naming{source: x.UUID}
	if c.m.Array != "" && !c.m.Hides(x.Body) {
		entry := c.m.Copy(x.UUID, x.Body)
		if n.tooLarge = c.m.IsTooLarge(entry); !n.tooLarge {
			n.adds = c.tallyOf(entry)
		}
	}
	for _, uuid := range uuids {
		n.target = store.Target{UUID: uuid, Owner: owner}
		all = append(all, n)
	}
	return all
}

func (c *check) tallyOf(entry []byte) tally {
	return tally{entries: 1, sum: maphash.Bytes(c.seed, entry)}
}

// compareArrays compares the array of every target in a span with its tally. The tallies that remain are of targets
// that do not exist.
func (c *check) compareArrays(ctx context.Context, targets *reader, named *tallies) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for t, ok := targets.next(named.span); ok && gctx.Err() == nil; t, ok = targets.next(named.span) {
		want := named.take(c.m.TargetOf(t.UUID, t.Body))
		g.Go(func() error { return c.compareArray(gctx, t, want) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return targets.err
}

// compareArray adds a target to the report, and to the candidates if its array differs from the entries of the objects.
func (c *check) compareArray(ctx context.Context, t store.Stored, want tally) error {
	value := c.array(t)
	var has tally
	size := 0
	object.Elements(value, func(entry []byte) bool {
		has = has.plus(c.tallyOf(entry))
		size += len(entry) + 1
		return true
	})
	full, invalid := c.m.Full(has.entries, size), isMalformed(value) || c.m.Exceeds(has.entries, size)
	differs := has != want || invalid
	if full && !invalid && has.entries < want.entries { // of which objects does not matter
		found, _, _, err := c.compare(ctx, t)
		if err != nil {
			return err
		}
		differs = len(found) > 0
	}
	c.tracker.targets.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Targets++
	c.report.Entries += int64(has.entries)
	if differs {
		c.candidates[t.UUID] = []string{}
	}
	if full && want.entries > has.entries {
		c.report.Full = append(c.report.Full, Full{
			Target: c.m.Target, Holder: t.UUID, Array: c.m.Array, Limit: c.m.Limit, Entries: has.entries, Bytes: size,
			Objects: want.entries,
		})
	}
	return nil
}

// findDeleted finds the targets that do not exist, although objects name them, because
// they were deleted: where the mapping cascades the objects are deleted too.
func (c *check) findDeleted(ctx context.Context, named *tallies) error {
	if !c.m.Cascade {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for target := range named.of {
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
	return pages(ctx, c.set.Store(c.m.Source), func(page []store.Stored) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, x := range page {
			for _, target := range c.names(x) {
				if sources, ok := c.candidates[target]; ok {
					c.candidates[target] = append(sources, x.UUID)
				}
			}
		}
	})
}

// compare compares the entries that a target has with their objects.
func (c *check) compare(ctx context.Context, t store.Stored) (found []Difference, entries, size int, err error) {
	value := c.array(t)
	if isMalformed(value) {
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

// array is that of a target, its strings in the form in which entries are computed: those of an old record may have
// others.
func (c *check) array(t store.Stored) []byte {
	return object.Canonical(object.Field(t.Body, c.m.Array))
}

func isMalformed(array []byte) bool { return array != nil && array[0] != '[' }

// whyNone says why an object that names the target has no entry.
func (c *check) whyNone(x, t store.Stored) string {
	switch {
	case x.Body == nil || !mapping.Names(c.m, x, t.UUID):
		return ""
	case !c.m.Owned(x.UUID, x.Body, c.m.TargetOf(t.UUID, t.Body)):
		return "the object does not belong to the owner of the target"
	case c.m.Hides(x.Body):
		return "the mapping's condition does not hold for the object"
	default:
		return ""
	}
}

// source reads an object; the zero Stored if it does not exist.
func (c *check) source(ctx context.Context, uuid string) (store.Stored, error) {
	x, err := c.set.Store(c.m.Source).Get(ctx, uuid)
	if errors.Is(err, errs.NotFound) {
		return store.Stored{}, nil
	}
	return x, err
}

func (c *check) difference(k Kind, holder, uuid, detail string) Difference {
	return Difference{Kind: k, Source: c.m.Source, UUID: uuid, Target: c.m.Target, Holder: holder, Array: c.m.Array,
		Detail: detail}
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
		detail := fmt.Sprintf("%d entries with %d bytes are more than its limits of %d entries and %d bytes", entries,
			size, c.m.Limit, c.m.MaxBytes)
		found = append(found, c.difference(Extra, target, "", detail))
	}
	if err != nil || c.m.Full(entries, size) {
		return found, err
	}
	has := map[string]bool{}
	object.Elements(c.array(t), func(entry []byte) bool {
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
