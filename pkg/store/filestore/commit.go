package filestore

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"belfry/pkg/errs"
)

// effect is what a batch does to the tally of a store.
type effect struct {
	s                *store
	records, pending int64  // added to the counts
	event            uint64 // revision of the new event; 0 for none
}

func (e *effect) addTo(batch *pebble.Batch) error {
	t := &e.s.tally
	t.records += e.records
	t.pending += e.pending
	if e.event != 0 {
		t.wrote(e.event)
	}
	return t.addTo(batch)
}

// commit applies a batch. With pebble.Sync the caller has then to wait for
// durable. A batch that failed must not be used or closed.
func (b *Backend) commit(batch *pebble.Batch, durability *pebble.WriteOptions, does *effect) (err error) {
	b.committing.Lock()
	defer b.committing.Unlock()
	if err := b.err(); err != nil {
		return err
	}
	defer b.broken(&err)
	if does != nil {
		if err := does.addTo(batch); err != nil {
			return b.fail(err)
		}
	}
	if durability.Sync {
		err = b.db.ApplyNoSyncWait(batch, durability)
	} else {
		err = b.db.Apply(batch, durability)
	}
	if err != nil {
		return b.fail(err)
	}
	if !durability.Sync {
		return closeBatch(batch)
	}
	return nil
}

// broken is to be deferred around Pebble's commit pipeline, which panics when
// its log can't be written.
func (b *Backend) broken(err *error) {
	if r := recover(); r != nil {
		b.wrecked.Store(true)
		*err = b.fail(fmt.Errorf("pebble: %v", r))
	}
}

// durable waits until an applied batch is on the disk.
func (b *Backend) durable(batch *pebble.Batch) error {
	if err := batch.SyncWait(); err != nil {
		return b.fail(err)
	}
	return closeBatch(batch)
}

func closeBatch(batch *pebble.Batch) error {
	return errs.Wrap(batch.Close(), errs.Internal, "filestore: closing a batch")
}

func (b *Backend) commitSynced(batch *pebble.Batch) error {
	if err := b.commit(batch, pebble.Sync, nil); err != nil {
		return err
	}
	return b.durable(batch)
}
