package store

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/query"
)

// How old the answer may be by which an index is taken for complete, or for one that is being built. Another process
// may have built it meanwhile, or have written without it.
var (
	completeFor = 10 * time.Second
	buildingFor = time.Second
)

// buildingRetry is when a caller may try again whose index is being built.
const buildingRetry = 5 * time.Second

// Indexes are the indexes of a store's handle in its backend. They say which are complete, and build the others. Stores
// of the same handle share them.
type Indexes struct {
	store   string
	driver  driver.Store
	names   []string
	used    map[string]*atomic.Int64 // by name: lists that have read the index
	asking  chan struct{}
	known   atomic.Pointer[indexBuilds]
	percent atomic.Int64 // of the objects; 0: not known

	// young says that requests of the configuration before still write, with other indexes; old, that those of the next
	// one do.
	young, old atomic.Bool
}

// indexBuilds is an answer of the driver.
type indexBuilds struct {
	asked  time.Time
	builds []driver.Build
}

// has reports whether an index is being built.
func (b *indexBuilds) has(index string) bool {
	return slices.ContainsFunc(b.builds, func(b driver.Build) bool { return b.Index == index })
}

func (b *indexBuilds) names() (names []string) {
	for _, b := range b.builds {
		names = append(names, b.Index)
	}
	return names
}

func newIndexes(d driver.Store, spec *driver.Spec, young bool) *Indexes {
	x := &Indexes{store: spec.Name, driver: d, used: map[string]*atomic.Int64{}, asking: make(chan struct{}, 1)}
	for _, i := range spec.Indexes {
		x.names = append(x.names, i.Name)
		x.used[i.Name] = &atomic.Int64{}
	}
	slices.Sort(x.names)
	x.young.Store(young)
	return x
}

// Succeed records that the stores of another configuration, whose indexes are next, serve from now on. Both may be the
// same. Lists that began before use the indexes that were complete then, which may lack later writes.
func (x *Indexes) Succeed(next *Indexes) {
	if x != next {
		x.old.Store(true)
	}
}

// Settle records that no process uses the previous configuration. Until then a write under it may lack the keys of an
// index at any time, so each list asks the backend which indexes are complete.
func (x *Indexes) Settle() { x.young.Store(false) }

// Names returns the names of all indexes, sorted.
func (x *Indexes) Names() []string { return x.names }

// Known returns the names of the indexes that were not complete when the backend was asked last; nil if it was not
// asked.
func (x *Indexes) Known() (names []string) {
	if known := x.known.Load(); known != nil {
		return known.names()
	}
	return nil
}

// Building returns the builds of the indexes that are not complete now.
func (x *Indexes) Building(ctx context.Context) ([]driver.Build, error) {
	known, err := x.since(ctx, time.Now())
	if err != nil {
		return nil, err
	}
	return known.builds, nil
}

// Reindex writes the keys of objects, without changing anything else of them: see driver.Indexes.
func (x *Indexes) Reindex(ctx context.Context, uuids []string) error {
	return x.driver.Reindex(ctx, uuids)
}

// Complete makes indexes complete once all objects are reindexed. It returns Mismatch if a process without these
// indexes has written meanwhile: then they must be built again.
func (x *Indexes) Complete(ctx context.Context, builds []driver.Build) error {
	if err := x.driver.Complete(ctx, builds); err != nil {
		return err
	}
	_, err := x.Building(ctx)
	return err
}

// Release removes the data of indexes that the store no longer has. Call it once no process reads them.
func (x *Indexes) Release(ctx context.Context) error { return x.driver.Release(ctx) }

// SetProgress sets the percentage of objects that are reindexed. Errors of requests that wait for the index show it.
func (x *Indexes) SetProgress(percent int) { x.percent.Store(int64(percent)) }

// ofLists returns a recent answer of the driver, for lists.
func (x *Indexes) ofLists(ctx context.Context) (*indexBuilds, error) {
	if known := x.known.Load(); known != nil && x.old.Load() {
		return known, nil
	}
	return x.recent(ctx)
}

// recent returns a recent answer of the driver.
func (x *Indexes) recent(ctx context.Context) (*indexBuilds, error) {
	if x.young.Load() {
		return x.since(ctx, time.Now())
	}
	age := completeFor
	if known := x.known.Load(); known != nil && len(known.builds) > 0 {
		age = buildingFor
	}
	return x.since(ctx, time.Now().Add(-age))
}

// since returns an answer of the driver to a question asked at a time or later. Those who wait for an answer share the
// next one.
func (x *Indexes) since(ctx context.Context, at time.Time) (*indexBuilds, error) {
	if known := x.known.Load(); known != nil && !known.asked.Before(at) {
		return known, nil
	}
	select {
	case x.asking <- struct{}{}:
		defer func() { <-x.asking }()
	case <-ctx.Done():
		return nil, errs.Wrap(context.Cause(ctx), errs.Canceled, "the request was canceled")
	}
	if known := x.known.Load(); known != nil && !known.asked.Before(at) {
		return known, nil
	}
	now := time.Now()
	builds, err := x.driver.Building(ctx)
	if err != nil {
		return nil, errs.Wrap(err, errs.KindOf(err), "store %s: its indexes are not known", x.store)
	}
	known := &indexBuilds{asked: now, builds: builds}
	x.known.Store(known)
	return known, nil
}

// errBuilding is the error of a request that needs an index that is being built. then names the request that is
// possible once the index is complete.
func (x *Indexes) errBuilding(what, then string) error {
	part := ""
	if percent := x.percent.Load(); percent > 0 {
		part = fmt.Sprintf(" (%d %%)", percent)
	}
	return &errs.Error{
		Kind: errs.Unavailable, RetryAfter: buildingRetry,
		Message: fmt.Sprintf("the index %s of %s is being built%s: %s when it is complete", what, x.store, part, then),
	}
}

// complete returns what an index finds, and an error in place of the end if keys may have been missing. With exact that
// takes a request to the backend; otherwise another process may have written without the index for a few seconds.
func (x *Indexes) complete(
	ctx context.Context, index string, exact bool, found iter.Seq2[Stored, error],
) iter.Seq2[Stored, error] {
	check := func(at *indexBuilds, err error) error {
		if err == nil && at.has(index) {
			err = x.errBuilding(strings.TrimPrefix(index, mapIndex("")), "objects are found by it")
		}
		return err
	}
	return func(yield func(Stored, error) bool) {
		if err := check(x.recent(ctx)); err != nil {
			yield(Stored{}, err)
			return
		}
		for o, err := range found {
			if !yield(o, err) || err != nil {
				return
			}
		}
		ask := x.recent
		if exact {
			ask = func(ctx context.Context) (*indexBuilds, error) { return x.since(ctx, time.Now()) }
		}
		if err := check(ask(ctx)); err != nil {
			yield(Stored{}, err)
		}
	}
}

// complete returns a lister without the indexes that are being built, and these.
func (l *lister) complete(ctx context.Context) (*lister, []query.Index, error) {
	known, err := l.state.ofLists(ctx)
	if err != nil {
		return nil, nil, err
	}
	var use, building []query.Index
	for _, i := range l.indexes {
		if known.has(i.Name) {
			building = append(building, i)
		} else {
			use = append(use, i)
		}
	}
	if len(building) == 0 {
		return l, nil, nil
	}
	other := *l
	other.setIndexes(use)
	return &other, building, nil
}

// whyUnsupported returns the error of a list that no complete index supports: it may be that one which is being built
// does.
func (l *lister) whyUnsupported(ctx context.Context, r *listRequest, building []query.Index, cause error) error {
	if len(building) == 0 {
		return cause
	}
	plan, err := l.plan(ctx, r)
	if err != nil {
		return cause
	}
	for _, read := range plan.Reads() {
		q, _ := read.Query()
		if i := slices.IndexFunc(building, func(i query.Index) bool { return i.Name == q.Index }); i >= 0 {
			return l.state.errBuilding(strings.Join(building[i].Fields, ", "), "lists by it are possible")
		}
	}
	return cause
}
