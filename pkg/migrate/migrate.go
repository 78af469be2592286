// Package migrate moves stores and binaries to other backends: records as they
// are, with their revisions and the events that wait in them, and contents by
// their hash. What is there already is left, so that a migration which broke
// off goes on where it was. At the end both sides are read again and compared.
//
// Nobody may write to either side meanwhile.
package migrate

import (
	"context"
	"crypto/sha256"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
)

const (
	page     = 500
	parallel = 32
)

// Progress counts what has been looked at. It is read while it changes.
type Progress struct {
	What   string // the store or the binary service in hand
	Done   int64  // records or contents looked at
	Total  int64  // roughly; 0 when nobody knows
	Copied int64
}

// Result is what became of a store or of the contents of a binary service.
type Result struct {
	Name        string   `json:"name"`
	Records     int64    `json:"records"` // objects, or contents
	Copied      int64    `json:"copied"`  // by this run
	Events      int64    `json:"events"`  // that wait, and came along
	Differences []string `json:"differences"`
}

// maxDifferences is how many differences a result lists.
const maxDifferences = 100

func (r *Result) differs(what string) {
	if len(r.Differences) < maxDifferences {
		r.Differences = append(r.Differences, what)
	}
}

// Store copies what from holds into to, and compares. tell may be nil.
func Store(ctx context.Context, from, to *store.Store, tell func(Progress)) (*Result, error) {
	m := &mover{from: from, to: to, result: &Result{Name: from.Name, Differences: []string{}}, tell: tell}
	for _, step := range []func(context.Context) error{m.readWaiting, m.copyLive, m.copyRest, m.compare} {
		if err := step(ctx); err != nil {
			return nil, errs.Wrap(err, errs.KindOf(err), "moving %s", from.Name)
		}
	}
	return m.result, nil
}

// mover moves one store.
type mover struct {
	from, to *store.Store
	waiting  map[string][]driver.Pending // events by their record
	result   *Result
	tell     func(Progress)
	total    int64
	done     atomic.Int64
	copied   atomic.Int64
}

func (m *mover) told() {
	if m.tell != nil {
		m.tell(Progress{What: m.from.Name, Done: m.done.Load(), Total: m.total, Copied: m.copied.Load()})
	}
}

// readWaiting reads the events that wait. There are few: they leave their
// records as soon as the bus has them.
func (m *mover) readWaiting(ctx context.Context) error {
	m.waiting = map[string][]driver.Pending{}
	var err error
	if m.total, _, err = m.from.Count(ctx); err != nil {
		return err
	}
	var after []byte
	for {
		events, next, err := m.from.Driver().Pending(ctx, after, page)
		if err != nil {
			return err
		}
		for _, e := range events {
			m.waiting[e.UUID] = append(m.waiting[e.UUID], e)
			m.result.Events++
		}
		if next == nil {
			return nil
		}
		after = next
	}
}

func (m *mover) copy(ctx context.Context, r driver.Record, waiting []driver.Pending) error {
	copied, err := m.to.Copy(ctx, r, waiting)
	if copied {
		m.copied.Add(1)
	}
	m.done.Add(1)
	return err
}

// copyLive copies the objects.
func (m *mover) copyLive(ctx context.Context) error {
	var after []byte
	for {
		found, err := m.from.Driver().Scan(ctx, after, page)
		if err != nil {
			return err
		}
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(parallel)
		for _, r := range found.Records {
			waiting := m.waiting[r.UUID]
			delete(m.waiting, r.UUID)
			g.Go(func() error { return m.copy(gctx, r, waiting) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
		m.told()
		if found.Next == nil {
			return nil
		}
		after = found.Next
	}
}

// copyRest copies the marks of deletions that hold an event. Others are not
// needed: revisions don't repeat, since they come from the clock.
func (m *mover) copyRest(ctx context.Context) error {
	for uuid, waiting := range m.waiting {
		r, found, err := m.from.Driver().Get(ctx, uuid)
		if err == nil && found {
			err = m.copy(ctx, r, waiting)
		}
		if err != nil {
			return err
		}
	}
	m.result.Copied = m.copied.Load()
	m.told()
	return nil
}

// compare reads both sides side by side, in the order of uuids.
func (m *mover) compare(ctx context.Context) error {
	a, b := &reader{from: m.from.Driver()}, &reader{from: m.to.Driver()}
	for {
		left, err := a.peek(ctx)
		if err != nil {
			return err
		}
		right, err := b.peek(ctx)
		if err != nil {
			return err
		}
		switch {
		case left == nil && right == nil:
			return nil
		case right == nil || left != nil && left.UUID < right.UUID:
			m.result.differs(left.UUID + ": missing")
			a.skip()
		case left == nil || right.UUID < left.UUID:
			m.result.differs(right.UUID + ": only in the new place")
			b.skip()
		default:
			m.result.Records++
			if left.Revision != right.Revision || sha256.Sum256(left.Body) != sha256.Sum256(right.Body) {
				m.result.differs(left.UUID + ": not the same")
			}
			a.skip()
			b.skip()
		}
	}
}

// reader reads the records of a store one by one.
type reader struct {
	from  driver.Store
	page  []driver.Record
	after []byte
	ended bool
}

// peek returns the next record, nil at the end.
func (r *reader) peek(ctx context.Context) (*driver.Record, error) {
	for len(r.page) == 0 && !r.ended {
		found, err := r.from.Scan(ctx, r.after, page)
		if err != nil {
			return nil, err
		}
		r.page, r.after, r.ended = found.Records, found.Next, found.Next == nil
	}
	if len(r.page) == 0 {
		return nil, nil
	}
	return &r.page[0], nil
}

func (r *reader) skip() { r.page = r.page[1:] }
