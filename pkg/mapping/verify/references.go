package verify

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/mapping"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Dangling is how often objects name, by a reference, an object that does not exist. That is a difference only where
// the reference says that it can't be.
type Dangling struct {
	Source   string `json:"source"`
	Field    string `json:"field"`
	Target   string `json:"target"`
	OnDelete string `json:"onDelete"`
	Named    int    `json:"named"`
	UUID     string `json:"uuid"`   // the first of the objects
	Holder   string `json:"holder"` // what it names
}

// Bounds of the memory of a verification of references.
const (
	maxExisting = 100_000 // named objects that are known to exist
	maxDangling = 10_000  // references that are read again together
	getAtOnce   = 32      // objects that are read in one request
)

// dangling is a reference of an object that may have to be reported.
type dangling struct {
	ref          *store.Referring
	uuid, target string
}

// referenceCheck reads the objects with references, and whether the objects exist that they name.
type referenceCheck struct {
	*verification
	reconciler *mapping.Reconciler
	existing   map[[2]string]struct{} // by store and uuid
	left       []dangling
	counts     map[*store.Referring]*Dangling
}

// references reports references to objects that do not exist. With Repair it does what the reference says.
func (v *verification) references(ctx context.Context) error {
	all := v.set.References()
	c := &referenceCheck{
		verification: v, reconciler: mapping.NewReconciler(v.set, mapping.Options{}),
		existing: map[[2]string]struct{}{}, counts: map[*store.Referring]*Dangling{},
	}
	for from := 0; from < len(all); {
		to := from + 1
		for to < len(all) && all[to].Source == all[from].Source {
			to++
		}
		if err := c.scan(ctx, all[from].Source, all[from:to]); err != nil {
			return errs.Wrap(err, errs.KindOf(err), "verifying the references of %s", all[from].Source)
		}
		from = to
	}
	if err := c.settle(ctx); err != nil {
		return err
	}
	for i := range all {
		if d := c.counts[&all[i]]; d != nil {
			v.report.Dangling = append(v.report.Dangling, *d)
		}
	}
	return nil
}

// scan reads the objects of a store.
func (c *referenceCheck) scan(ctx context.Context, name string, references []store.Referring) error {
	for after, more := []byte(nil), true; more; {
		page, next, err := c.set.Store(name).Scan(ctx, after, pageSize)
		if err != nil {
			return err
		}
		for i := range references {
			if err := c.scanPage(ctx, &references[i], page); err != nil {
				return err
			}
		}
		if len(c.left) >= maxDangling {
			if err := c.settle(ctx); err != nil {
				return err
			}
		}
		after, more = next, next != nil
	}
	return nil
}

func (c *referenceCheck) scanPage(ctx context.Context, ref *store.Referring, page []store.Stored) error {
	var named []string
	for _, x := range page {
		named = append(named, store.KeyTargets(object.Field(x.Body, ref.Field))...)
	}
	missing, err := c.missing(ctx, ref.Target, named)
	if err != nil || len(missing) == 0 {
		return err
	}
	for _, x := range page {
		for _, target := range store.KeyTargets(object.Field(x.Body, ref.Field)) {
			if !missing[target] {
				continue
			}
			d := dangling{ref, x.UUID, target}
			differs, err := c.differs(ctx, d)
			switch {
			case err != nil:
				return err
			case differs:
				c.left = append(c.left, d)
			case ref.OnDelete != store.OnDeleteCascade || !ref.Required || c.sparing(ref) != nil:
				c.count(d)
			}
		}
	}
	return nil
}

// missing returns those of some objects that do not exist.
func (c *referenceCheck) missing(ctx context.Context, name string, uuids []string) (map[string]bool, error) {
	unknown := slices.DeleteFunc(uuids, func(uuid string) bool {
		_, known := c.existing[[2]string{name, uuid}]
		return known
	})
	slices.Sort(unknown)
	unknown = slices.Compact(unknown)
	missing, s := map[string]bool{}, c.set.Store(name)
	var mu sync.Mutex
	note := func(uuid string, exists bool) {
		mu.Lock()
		defer mu.Unlock()
		if !exists {
			missing[uuid] = true
			return
		}
		if len(c.existing) >= maxExisting {
			clear(c.existing)
		}
		c.existing[[2]string{name, uuid}] = struct{}{}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for chunk := range slices.Chunk(unknown, getAtOnce) {
		g.Go(func() error { return readChunk(ctx, s, chunk, note) })
	}
	return missing, g.Wait()
}

// readChunk notes which objects exist.
func readChunk(ctx context.Context, s *store.Store, uuids []string, note func(uuid string, exists bool)) error {
	exist, err := mapping.Existing(ctx, s, uuids)
	if err != nil {
		return err
	}
	for _, uuid := range uuids {
		note(uuid, exist[uuid])
	}
	return nil
}

// differs reports whether an object still names one that does not exist, and this is a difference:
//
//	keep       never
//	restrict   the object has been deleted, or the reference is required
//	clear      the object has been deleted
//	cascade    the reference is required, and the cascade deletes the object; what was deleted is compared with the
//	           mappings and links
//
// A reference that is not required may name an object that nobody has created yet.
func (c *referenceCheck) differs(ctx context.Context, d dangling) (bool, error) {
	if d.ref.OnDelete == store.OnDeleteKeep || d.ref.OnDelete == "" {
		return false, nil
	}
	x, err := c.set.Store(d.ref.Source).Get(ctx, d.uuid)
	if errors.Is(err, errs.NotFound) {
		return false, nil
	}
	if err != nil || !slices.Contains(store.KeyTargets(object.Field(x.Body, d.ref.Field)), d.target) {
		return false, err
	}
	targets := c.set.Store(d.ref.Target)
	exists, err := targets.Exists(ctx, d.target)
	if err != nil || exists {
		return false, err
	}
	t, deleted, err := targets.Deleted(ctx, d.target)
	if d.ref.OnDelete == store.OnDeleteCascade {
		m := c.sparing(d.ref)
		return d.ref.Required && (m == nil || m.Owned(x.UUID, x.Body, m.DeletedTarget(d.target, t))), err
	}
	return deleted || d.ref.Required, err
}

// sparing returns the cascade of a reference if it deletes only objects of their target's owner, otherwise nil. Others
// may name any object, and stay when it is deleted. So does, for the verification, an object whose target's owner is no
// longer known.
func (c *referenceCheck) sparing(ref *store.Referring) *store.Mapping {
	for _, m := range c.set.Cascades()[ref.Target] {
		if m.Source == ref.Source && m.Key == ref.Field {
			if m.SourceOwner == "" {
				return nil
			}
			return m
		}
	}
	return nil
}

// settle reads references again, until none dangles or RecheckFor has passed, and reports those that are left.
func (c *referenceCheck) settle(ctx context.Context) error {
	deadline := time.Now().Add(c.options.RecheckFor)
	for delay := backoff.New(10*time.Millisecond, time.Second); len(c.left) > 0; {
		last := !time.Now().Before(deadline)
		if err := c.round(ctx); err != nil {
			return err
		}
		if last {
			break
		}
		if len(c.left) > 0 {
			if err := delay.Wait(ctx); err != nil {
				return err
			}
		}
	}
	for _, d := range c.left {
		c.count(d)
		c.report.add([]Difference{{
			Kind: Broken, Source: d.ref.Source, UUID: d.uuid, Target: d.ref.Target, Holder: d.target,
			Detail: "its " + d.ref.Field + " names this object, which does not exist",
		}})
	}
	c.left = c.left[:0]
	return nil
}

// round repairs the references that are left, if that is asked for, and keeps those that still dangle.
func (c *referenceCheck) round(ctx context.Context) error {
	var repaired atomic.Int64
	dangle := make([]bool, len(c.left))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i, d := range c.left {
		g.Go(func() (err error) {
			if dangle[i], err = c.differs(gctx, d); err != nil || !dangle[i] || !c.options.Repair {
				return err
			}
			if d.ref.OnDelete != store.OnDeleteClear {
				return nil
			}
			if err := c.reconciler.Follow(gctx, d.ref, d.target, d.uuid); err != nil {
				return err
			}
			dangle[i], err = c.differs(gctx, d)
			if err == nil && !dangle[i] {
				repaired.Add(1)
			}
			return err
		})
	}
	err := g.Wait()
	c.report.Repaired += int(repaired.Load())
	c.options.Tracker.corrected(repaired.Load())
	at := -1
	c.left = slices.DeleteFunc(c.left, func(dangling) bool { at++; return !dangle[at] })
	return err
}

func (c *referenceCheck) count(d dangling) {
	n := c.counts[d.ref]
	if n == nil {
		n = &Dangling{
			Source: d.ref.Source, Field: d.ref.Field, Target: d.ref.Target,
			OnDelete: cmp.Or(d.ref.OnDelete, store.OnDeleteKeep), UUID: d.uuid, Holder: d.target,
		}
		c.counts[d.ref] = n
	}
	n.Named++
}
