// Package migrate moves stores and binaries to other backends: records as they
// are, with their revisions and the events that wait in them, and contents by
// their hash. What is there already is left, so that a migration which broke
// off goes on where it was. At the end both sides are read again and compared.
//
// Nobody may write to either side meanwhile.
package migrate

import (
	"bytes"
	"context"
	"fmt"
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
	More        int64    `json:"more"` // differences that are not listed
}

// maxDifferences is how many differences a result lists.
const maxDifferences = 100

func (r *Result) differs(format string, args ...any) {
	if len(r.Differences) == maxDifferences {
		r.More++
		return
	}
	r.Differences = append(r.Differences, fmt.Sprintf(format, args...))
}

// Store copies what from holds into to, and compares. tell may be nil.
func Store(ctx context.Context, from, to *store.Store, tell func(Progress)) (*Result, error) {
	m := &mover{from: from, to: to, result: &Result{Name: from.Name(), Differences: []string{}}, tell: tell}
	for _, step := range []func(context.Context) error{m.readWaiting, m.copyLive, m.copyRest, m.compare} {
		if err := step(ctx); err != nil {
			return nil, errs.Wrap(err, errs.KindOf(err), "moving %s", from.Name())
		}
	}
	m.result.Copied = m.copied.Load()
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
		m.tell(Progress{What: m.from.Name(), Done: m.done.Load(), Total: m.total, Copied: m.copied.Load()})
	}
}

// readWaiting reads the events that wait. There are few: they leave their
// records as soon as the bus has them.
func (m *mover) readWaiting(ctx context.Context) error {
	m.waiting = map[string][]driver.Pending{}
	err := patiently(ctx, func() (err error) {
		m.total, _, err = m.from.Count(ctx)
		return err
	})
	if err != nil {
		return err
	}
	var after []byte
	for {
		var events []driver.Pending
		var next []byte
		err := patiently(ctx, func() (err error) {
			events, next, err = m.from.Driver().Pending(ctx, after, page)
			return err
		})
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
	err := patiently(ctx, func() error {
		copied, err := store.NewWorker(m.to).CopyRecord(ctx, r, waiting)
		if copied {
			m.copied.Add(1)
		}
		return err
	})
	m.done.Add(1)
	return err
}

// copyLive copies the objects.
func (m *mover) copyLive(ctx context.Context) error {
	var after []byte
	for {
		found, err := scan(ctx, m.from.Driver(), after)
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

func scan(ctx context.Context, s driver.Store, after []byte) (found driver.Page, err error) {
	err = patiently(ctx, func() (err error) {
		found, err = s.Scan(ctx, after, page)
		return err
	})
	return found, err
}

// copyRest copies the marks of deletions that hold an event. Others are not
// needed: revisions don't repeat, since they come from the clock.
func (m *mover) copyRest(ctx context.Context) error {
	for uuid, waiting := range m.waiting {
		r, found, err := get(ctx, m.from.Driver(), uuid)
		if err == nil && found {
			err = m.copy(ctx, r, waiting)
		}
		if err != nil {
			return err
		}
	}
	m.told()
	return nil
}

func get(ctx context.Context, s driver.Store, uuid string) (r driver.Record, found bool, err error) {
	err = patiently(ctx, func() (err error) {
		r, found, err = s.Get(ctx, uuid)
		return err
	})
	return r, found, err
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
			m.result.differs("%s: missing", left.UUID)
			a.skip()
		case left == nil || right.UUID < left.UUID:
			if err := m.surplus(ctx, right); err != nil {
				return err
			}
			b.skip()
		default:
			m.result.Records++
			if left.Revision != right.Revision || !bytes.Equal(left.Body, right.Body) {
				m.result.differs("%s: not the same", left.UUID)
			}
			a.skip()
			b.skip()
		}
	}
}

// surplus is about an object that only the new place has. An earlier run may
// have brought it that broke off, and it was deleted since.
func (m *mover) surplus(ctx context.Context, there *driver.Record) error {
	r, found, err := get(ctx, m.from.Driver(), there.UUID)
	if err != nil {
		return err
	}
	if found && r.Deleted && r.Revision > there.Revision {
		return m.copy(ctx, r, nil)
	}
	m.result.differs("%s: only in the new place", there.UUID)
	return nil
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
		found, err := scan(ctx, r.from, r.after)
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
