package filestore

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"belfry/pkg/errs"
)

const (
	groupRequests = 256     // maximum number of requests in a group
	groupBytes    = 1 << 20 // size after which no further request is added to a group
)

// countersDelta is how a batch changes the counters of a store.
type countersDelta struct {
	of               *records // nil: no change
	records, pending int64    // added to the counters
	event            uint64   // lowest revision of the new events; 0 for none
}

// request is a batch to apply. Then the committer owns the batch.
type request struct {
	batch   *pebble.Batch
	delta   countersDelta
	lock    lock           // released once the batch is visible; may be nil
	durable bool           // done when the batch is synced, otherwise when it is visible
	written *atomic.Uint64 // is set to the group before the batch is visible; nil: no record is written
	done    chan error     // has capacity 1
}

func (r *request) unlock() {
	if r.lock != nil {
		r.lock.release()
	}
}

// committer applies batches for a Backend and combines those that are queued
// (group commit). One goroutine makes them visible, another waits for the fsync,
// while the first continues.
//
// No other goroutine enters Pebble's commit pipeline, which may block for long
// while tables are written, and forever when the disk fails: callers can thus
// honor their contexts and never get stuck.
type committer struct {
	h     *health
	db    *pebble.DB
	wrote func(bytes int) // is called for each group

	queue      chan *request
	syncing    chan syncing
	durability durability

	quit    chan struct{} // closed to stop the committer
	applied chan struct{} // closed when apply has returned
	synced  chan struct{} // closed when sync has returned

	// countersLock guards the counters of all stores. It is held while a batch is
	// applied, so that its holder sees the same writes in counters and database.
	countersLock lock
	changed      map[*counters]bool // by the current batch
}

// syncing is an applied batch with the requests that wait for its fsync.
type syncing struct {
	group   uint64
	batch   *pebble.Batch
	waiters []*request
}

func newCommitter(h *health, db *pebble.DB, wrote func(bytes int)) *committer {
	c := &committer{
		h: h, db: db, wrote: wrote,
		queue:        make(chan *request, groupRequests),
		syncing:      make(chan syncing, 64),
		quit:         make(chan struct{}),
		applied:      make(chan struct{}),
		synced:       make(chan struct{}),
		countersLock: newLock(),
		changed:      make(map[*counters]bool),
	}
	go c.apply()
	go c.sync()
	return c
}

// commit applies a request. When the context ends first, the request may or may
// not be applied.
func (c *committer) commit(ctx context.Context, r *request) error {
	if err := c.enqueue(ctx, r); err != nil {
		return err
	}
	return c.await(ctx, r)
}

// enqueue is the first part of commit: the request is applied after all that were enqueued before, and its lock
// released.
func (c *committer) enqueue(ctx context.Context, r *request) error {
	r.done = make(chan error, 1)
	select {
	case c.queue <- r:
		return nil
	case <-c.quit:
		r.unlock()
		return c.h.err()
	case <-c.h.failed:
		r.unlock()
		return c.h.err()
	case <-ctx.Done():
		r.unlock()
		return errCanceled(ctx.Err())
	}
}

// await is the second part of commit.
func (c *committer) await(ctx context.Context, r *request) error {
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return errCanceled(ctx.Err())
	case <-c.h.failed:
		return c.h.err()
	case <-c.applied:
		return c.h.err()
	}
}

// stop waits for all applied batches to be synced and stops the committer. No
// call of commit may be in progress.
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
			group := c.gather(r)
			size := 0
			for _, r := range group {
				size += r.batch.Len() // it is closed when it is applied
			}
			c.applyGroup(group)
			c.wrote(size)
		case <-c.quit:
			return
		}
	}
}

// gather returns a request with those that are queued.
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

// applyGroup makes a group visible and hands it to sync if it must be durable.
func (c *committer) applyGroup(group []*request) {
	var waiters []*request
	number := c.durability.applied.Load() + 1
	for _, r := range group {
		if r.durable {
			waiters = append(waiters, r)
			if r.written != nil {
				r.written.Store(number)
			}
		}
	}
	if len(waiters) > 0 {
		c.durability.applied.Store(number)
	}
	batch, err := c.applyBatch(group, len(waiters) > 0)
	for _, r := range group {
		r.unlock()
		if err != nil || !r.durable {
			r.done <- err
		}
	}
	if err == nil && len(waiters) > 0 {
		c.syncing <- syncing{group: number, batch: batch, waiters: waiters}
	}
}

// applyBatch merges the batches of a group and applies the result. It returns
// that batch, whose sync must be awaited if durable is set.
func (c *committer) applyBatch(group []*request, durable bool) (batch *pebble.Batch, err error) {
	defer c.recoverPanic(&err)
	if err := c.h.err(); err != nil {
		return nil, err
	}
	if batch, err = c.merge(group); err != nil {
		return nil, c.h.fail(err)
	}
	if err := c.countersLock.acquire(context.Background(), c.h); err != nil {
		return nil, err
	}
	defer c.countersLock.release()
	if err := c.updateCounters(batch, group); err != nil {
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

// recoverPanic recovers a panic of the commit pipeline and marks it unusable.
func (c *committer) recoverPanic(err *error) {
	if r := recover(); r != nil {
		c.h.halted.Store(true)
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

// updateCounters applies the changes of a group to the counters and adds them to
// the batch.
func (c *committer) updateCounters(batch *pebble.Batch, group []*request) error {
	for _, r := range group {
		if r.delta.of != nil {
			t := &r.delta.of.counters
			t.apply(&r.delta)
			c.changed[t] = true
		}
	}
	for t := range c.changed {
		if err := t.addTo(batch); err != nil {
			return err
		}
	}
	clear(c.changed)
	return nil
}

// sync waits for the fsync of one batch after the other: the log is synced in the
// order in which it is written.
func (c *committer) sync() {
	defer close(c.synced)
	for s := range c.syncing {
		err := s.batch.SyncWait()
		if err != nil {
			err = c.h.fail(err)
		} else {
			c.durability.setSynced(s.group)
			err = errs.Wrap(s.batch.Close(), errs.Internal, "filestore: closing a batch")
		}
		for _, r := range s.waiters {
			r.done <- err
		}
	}
}
