package filestore

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"belfry/pkg/errs"
)

const (
	groupRequests = 256     // how many requests are applied as one
	groupBytes    = 1 << 20 // how many bytes they may have but for the last
)

// effect is what a batch does to the tally of a store.
type effect struct {
	s                *store // nil: nothing
	records, pending int64  // added to the counts
	event            uint64 // revision of the new event; 0 for none
}

// request asks the committer to apply a batch. The batch is the committer's
// from then on.
type request struct {
	batch   *pebble.Batch
	does    effect
	lock    lock       // given free once the batch is visible; nil for none
	durable bool       // done once it is on the disk, else once it is visible
	done    chan error // holds one
}

func (r *request) unlock() {
	if r.lock != nil {
		r.lock.free()
	}
}

// committer applies batches for a Backend, all that wait as one. Two
// goroutines do that: the first makes them visible, the second waits for the
// disk, while the first goes on.
//
// No other goroutine enters Pebble's commit pipeline, which may stop for long
// while tables are written, and for good when the disk fails: so a caller's
// context is honoured, and no caller is stuck.
type committer struct {
	h  *health
	db *pebble.DB

	queue   chan *request
	syncing chan syncing
	quit    chan struct{} // closed to end the committer
	applied chan struct{} // closed when nothing is applied any more
	synced  chan struct{} // closed when nothing is synced any more

	// tallies guards every store's tally. It is held while a batch is applied,
	// so that who holds it sees the same writes in tally and database.
	tallies lock
	touched map[*tally]bool // by the batch in hand
}

// syncing is an applied batch and who waits until it is on the disk.
type syncing struct {
	batch   *pebble.Batch
	waiters []*request
}

func newCommitter(h *health, db *pebble.DB) *committer {
	c := &committer{
		h: h, db: db,
		queue:   make(chan *request, groupRequests),
		syncing: make(chan syncing, 64),
		quit:    make(chan struct{}),
		applied: make(chan struct{}),
		synced:  make(chan struct{}),
		tallies: newLock(),
		touched: make(map[*tally]bool),
	}
	go c.apply()
	go c.sync()
	return c
}

// commit has a request done. When the context ends before, it may or may not
// be done yet.
func (c *committer) commit(ctx context.Context, r *request) error {
	r.done = make(chan error, 1)
	select {
	case c.queue <- r:
	case <-c.quit:
		r.unlock()
		return c.h.err()
	case <-c.h.failed:
		r.unlock()
		return c.h.err()
	case <-ctx.Done():
		r.unlock()
		return canceled(ctx.Err())
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return canceled(ctx.Err())
	case <-c.h.failed:
		return c.h.err()
	case <-c.applied:
		return c.h.err()
	}
}

// stop ends the committer once all that it was given is done. Nothing may be
// under way.
func (c *committer) stop() {
	close(c.quit)
	<-c.applied
	<-c.synced
}

func (c *committer) apply() {
	defer close(c.applied)
	defer close(c.syncing)
	for {
		select {
		case r := <-c.queue:
			c.applyGroup(c.gather(r))
		case <-c.quit:
			return
		}
	}
}

// gather takes what else waits.
func (c *committer) gather(first *request) []*request {
	group := []*request{first}
	for size := first.batch.Len(); len(group) < groupRequests && size < groupBytes; {
		select {
		case r := <-c.queue:
			group = append(group, r)
			size += r.batch.Len()
		default:
			return group
		}
	}
	return group
}

// applyGroup makes a group visible and passes on who waits for the disk.
func (c *committer) applyGroup(group []*request) {
	var waiters []*request
	for _, r := range group {
		if r.durable {
			waiters = append(waiters, r)
		}
	}
	batch, err := c.applyAsOne(group, len(waiters) > 0)
	for _, r := range group {
		r.unlock()
		if err != nil || !r.durable {
			r.done <- err
		}
	}
	if err == nil && len(waiters) > 0 {
		c.syncing <- syncing{batch: batch, waiters: waiters}
	}
}

// applyAsOne applies the batches of a group in one. That batch is returned,
// and must be waited for, when it is to be durable.
func (c *committer) applyAsOne(group []*request, durable bool) (batch *pebble.Batch, err error) {
	defer c.broken(&err)
	if err := c.h.err(); err != nil {
		return nil, err
	}
	if batch, err = c.merge(group); err != nil {
		return nil, c.h.fail(err)
	}
	if err := c.tallies.take(context.Background(), c.h); err != nil {
		return nil, err
	}
	defer c.tallies.free()
	if err := c.tally(batch, group); err != nil {
		return nil, c.h.fail(err)
	}
	if durable {
		err = c.db.ApplyNoSyncWait(batch, pebble.Sync)
	} else if err = c.db.Apply(batch, pebble.NoSync); err == nil {
		err = batch.Close()
	}
	if err != nil {
		return nil, c.h.fail(err)
	}
	return batch, nil
}

// broken catches a panic in the commit pipeline, which leaves it unusable.
func (c *committer) broken(err *error) {
	if r := recover(); r != nil {
		c.h.wrecked.Store(true)
		*err = c.h.fail(fmt.Errorf("pebble: %v", r))
	}
}

func (c *committer) merge(group []*request) (*pebble.Batch, error) {
	if len(group) == 1 {
		return group[0].batch, nil
	}
	size := 0
	for _, r := range group {
		size += r.batch.Len()
	}
	batch := c.db.NewBatchWithSize(size + 64)
	for _, r := range group {
		if err := batch.Apply(r.batch, nil); err != nil {
			return nil, err
		}
		if err := r.batch.Close(); err != nil {
			return nil, err
		}
	}
	return batch, nil
}

// tally counts what a group does, and adds the new counts to its batch.
func (c *committer) tally(batch *pebble.Batch, group []*request) error {
	for _, r := range group {
		if r.does.s != nil {
			t := &r.does.s.tally
			t.count(&r.does)
			c.touched[t] = true
		}
	}
	for t := range c.touched {
		if err := t.addTo(batch); err != nil {
			return err
		}
	}
	clear(c.touched)
	return nil
}

// sync waits for the disk, for one batch after the other: the log is synced in
// the order in which it is written.
func (c *committer) sync() {
	defer close(c.synced)
	for s := range c.syncing {
		err := s.batch.SyncWait()
		if err != nil {
			err = c.h.fail(err)
		} else {
			err = errs.Wrap(s.batch.Close(), errs.Internal, "filestore: closing a batch")
		}
		for _, r := range s.waiters {
			r.done <- err
		}
	}
}
