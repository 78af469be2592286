package filestore

import (
	"context"
	"sync"
	"sync/atomic"
)

// durability records which writes are synced. The groups of writes are numbered from 1 in
// the order of the log. A write is visible before it is synced, so readers wait for the
// sync. A power failure could undo the write, but not its effects in another backend, on
// the bus or in a client.
type durability struct {
	applied atomic.Uint64 // the last group that may be visible
	synced  atomic.Uint64 // this group and all before it survive a power failure

	mu      sync.Mutex
	changed chan struct{} // closed when synced grows; nil when nobody waits
}

// setSynced records that a group and all before it are synced.
func (d *durability) setSynced(group uint64) {
	d.synced.Store(group)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.changed != nil {
		close(d.changed)
		d.changed = nil
	}
}

// wait waits until a group is synced.
func (d *durability) wait(ctx context.Context, h *health, group uint64) error {
	for d.synced.Load() < group {
		changed := d.next()
		if d.synced.Load() >= group {
			return nil
		}
		select {
		case <-changed:
		case <-h.failed:
			return h.err()
		case <-ctx.Done():
			return errCanceled(ctx.Err())
		}
	}
	return nil
}

// next returns a channel that is closed when synced grows.
func (d *durability) next() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.changed == nil {
		d.changed = make(chan struct{})
	}
	return d.changed
}

// awaitRecord waits until the data that was read of a record is synced.
func (s *store) awaitRecord(ctx context.Context, uuid string) error {
	return s.b.committer.durability.wait(ctx, s.b.health, s.stripe(uuid).written.Load())
}

// awaitAll waits until everything that was read is synced.
func (s *store) awaitAll(ctx context.Context) error {
	d := &s.b.committer.durability
	return d.wait(ctx, s.b.health, d.applied.Load())
}
