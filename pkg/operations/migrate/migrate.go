// Package migrate copies stores and binaries to other backends: records unchanged, with
// their revisions and pending events, and contents by their hash. It does not overwrite
// existing records, so an interrupted migration can be resumed. Finally both sides are
// read again and compared.
//
// Neither side may be written to during a migration.
package migrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
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

// Progress is a snapshot of the progress of a migration.
type Progress struct {
	What   string // the current store or binary service
	Done   int64  // processed records or contents
	Total  int64  // an estimate; 0 when unknown
	Copied int64
}

// Result is the result of copying a store or the contents of a binary service.
type Result struct {
	Name        string   `json:"name"`
	Records     int64    `json:"records"` // objects, or contents
	Copied      int64    `json:"copied"`  // by this run
	Events      int64    `json:"events"`  // pending events that were copied
	Differences []string `json:"differences"`
	More        int64    `json:"more"` // number of differences that are not listed
}

// maxDifferences is the number of differences that a result lists.
const maxDifferences = 100

func (r *Result) differs(format string, args ...any) {
	if len(r.Differences) == maxDifferences {
		r.More++
		return
	}
	r.Differences = append(r.Differences, fmt.Sprintf(format, args...))
}

// Store copies the records of a store and compares both sides. progress may be nil.
func Store(ctx context.Context, from, to *store.Store, progress func(Progress)) (*Result, error) {
	m := &storeMigration{from: from, to: to, result: &Result{Name: from.Name(), Differences: []string{}},
		progress: progress}
	for _, step := range []func(context.Context) error{
		to.Claims().Renew, to.Aggregates().Renew, m.readPending, m.copyLive, m.copyTombstones, m.compare,
	} {
		if err := step(ctx); err != nil {
			return nil, errs.Wrap(err, errs.KindOf(err), "copying %s", from.Name())
		}
	}
	m.result.Copied = m.copied.Load()
	return m.result, nil
}

// storeMigration copies a store.
type storeMigration struct {
	from, to *store.Store
	pending  map[string][]driver.Pending // events by record
	result   *Result
	progress func(Progress)
	total    int64
	done     atomic.Int64
	copied   atomic.Int64
}

func (m *storeMigration) report() {
	if m.progress != nil {
		m.progress(Progress{What: m.from.Name(), Done: m.done.Load(), Total: m.total, Copied: m.copied.Load()})
	}
}

// readPending reads all pending events. There are few, because events are cleared soon
// after they were published.
func (m *storeMigration) readPending(ctx context.Context) error {
	m.pending = map[string][]driver.Pending{}
	err := retry(ctx, func() (err error) {
		m.total, _, err = m.from.Count(ctx)
		return err
	})
	if err != nil {
		return err
	}
	for e, err := range driver.PendingEvents(ctx, retrying{m.from.Driver()}, page) {
		if err != nil {
			return err
		}
		m.pending[e.UUID] = append(m.pending[e.UUID], e)
		m.result.Events++
	}
	return nil
}

func (m *storeMigration) copy(ctx context.Context, r driver.Record, waiting []driver.Pending) error {
	err := retry(ctx, func() error {
		copied, err := store.NewWorker(m.to).CopyRecord(ctx, r, waiting)
		if copied {
			m.copied.Add(1)
		}
		return err
	})
	m.done.Add(1)
	return err
}

// copyLive copies the live records.
func (m *storeMigration) copyLive(ctx context.Context) error {
	var after []byte
	for {
		found, err := retrying{m.from.Driver()}.Scan(ctx, after, page)
		if err != nil {
			return err
		}
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(parallel)
		for _, r := range found.Records {
			waiting := m.pending[r.UUID]
			delete(m.pending, r.UUID)
			g.Go(func() error { return m.copy(gctx, r, waiting) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
		m.report()
		if found.Next == nil {
			return nil
		}
		after = found.Next
	}
}

// copyTombstones copies the tombstones that have pending events. Others are not needed:
// revisions come from the clock and don't repeat.
func (m *storeMigration) copyTombstones(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for uuid, waiting := range m.pending {
		g.Go(func() error {
			r, found, err := retrying{m.from.Driver()}.Get(gctx, uuid)
			if err == nil && found {
				err = m.copy(gctx, r, waiting)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	m.report()
	return nil
}

// compare reads both sides in the order of UUIDs and compares them.
func (m *storeMigration) compare(ctx context.Context) error {
	nextLeft, stopLeft := iter.Pull2(driver.Records(ctx, retrying{m.from.Driver()}, page))
	defer stopLeft()
	nextRight, stopRight := iter.Pull2(driver.Records(ctx, retrying{m.to.Driver()}, page))
	defer stopRight()
	left, err, hasLeft := nextLeft()
	right, rightErr, hasRight := nextRight()
	for hasLeft || hasRight {
		if err := errors.Join(err, rightErr); err != nil {
			return err
		}
		onlyLeft := !hasRight || hasLeft && left.UUID < right.UUID
		onlyRight := !hasLeft || hasRight && right.UUID < left.UUID
		switch {
		case onlyLeft:
			m.result.differs("%s: missing", left.UUID)
		case onlyRight:
			if err := m.checkExtra(ctx, &right); err != nil {
				return err
			}
		default:
			m.result.Records++
			if left.Revision != right.Revision || !bytes.Equal(left.Body, right.Body) {
				m.result.differs("%s: different", left.UUID)
			}
		}
		if !onlyRight {
			left, err, hasLeft = nextLeft()
		}
		if !onlyLeft {
			right, rightErr, hasRight = nextRight()
		}
	}
	return nil
}

// checkExtra handles an object that only the destination has. An interrupted run may
// have copied it before it was deleted.
func (m *storeMigration) checkExtra(ctx context.Context, there *driver.Record) error {
	r, found, err := retrying{m.from.Driver()}.Get(ctx, there.UUID)
	if err != nil {
		return err
	}
	if found && r.Deleted && r.Revision > there.Revision {
		return m.copy(ctx, r, nil)
	}
	m.result.differs("%s: only in the destination", there.UUID)
	return nil
}
