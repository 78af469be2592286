package filestore

import (
	"bytes"
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// Put implements driver.Store.
func (s *store) Put(ctx context.Context, w driver.Write) (err error) {
	defer s.b.health.recoverFatal(&err)
	if err := s.b.ready(ctx); err != nil {
		return err
	}
	if err := s.beforeWrite(ctx); err != nil {
		return err
	}
	entries, err := encodeEntries(s.indexes, w.Keys)
	if err != nil {
		return err
	}
	r, err := s.prepare(ctx, &w, entries)
	if errors.Is(err, errs.Mismatch) {
		if err := s.awaitRecord(ctx, w.UUID); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return s.b.committer.commit(ctx, r)
}

// prepare checks the precondition of a write and assembles its batch, holding the
// lock of its UUID. The committer releases the lock when the write is visible,
// which is before it is synced.
func (s *store) prepare(ctx context.Context, w *driver.Write, entries []byte) (r *request, err error) {
	stripe := s.stripe(w.UUID)
	lock := stripe.lock
	if err := lock.acquire(ctx, s.b.health); err != nil {
		return nil, err
	}
	defer func() {
		if r == nil {
			lock.release()
		}
	}()
	if w.Body == nil {
		s.hasTombstones.Store(true)
	}
	var p current
	if !w.Fresh { // a tenth of the processor time of a create
		if p, err = s.current(w.UUID, w.IfRevision == 0); err != nil {
			return nil, err
		}
	}
	if !p.permits(w) {
		return nil, errs.New(errs.Mismatch, "the object was changed concurrently")
	}
	next := stored{revision: w.Revision, entries: entries}
	chunks, err := s.split(p, w, &next)
	if err != nil {
		return nil, err
	}
	batch := s.b.db.NewBatch()
	delta, err := s.addChanges(batch, p, w, next, chunks)
	if err != nil {
		return nil, s.b.health.fail(err)
	}
	return &request{batch: batch, delta: delta, lock: lock, durable: true, written: &stripe.written}, nil
}

// permits reports whether the precondition of a write is met.
func (p *current) permits(w *driver.Write) bool {
	if w.FirstRevision() <= p.revision {
		return false
	}
	if w.IfRevision == 0 {
		return !p.live
	}
	return p.live && p.revision == w.IfRevision
}

// addChanges adds all changes of a write to a batch.
func (s *store) addChanges(batch *pebble.Batch, p current, w *driver.Write, next stored,
	chunks []changedChunks) (countersDelta, error) {
	delta := countersDelta{of: s.records}
	if w.Event.ID != "" {
		delta.pending, delta.event = 1+int64(len(w.ExtraEvents)), w.FirstRevision()
	}
	var err error
	if w.Body == nil {
		err = s.writeTombstone(batch, p, w)
		if p.live {
			delta.records = -1
		}
	} else {
		err = s.writeRecord(batch, p, w, next)
		if !p.live {
			delta.records = 1
		}
	}
	if err == nil {
		err = s.setChunks(batch, w.UUID, chunks)
	}
	if err == nil && w.Event.ID != "" {
		err = setEvent(batch, s.id, w.UUID, w.FirstRevision(), &w.Event)
	}
	for i := range w.ExtraEvents {
		if err == nil {
			err = setEvent(batch, s.id, w.UUID, w.FirstRevision()+1+uint64(i), &w.ExtraEvents[i])
		}
	}
	return delta, err
}

// writeRecord replaces the current record or tombstone by a live record.
func (s *store) writeRecord(batch *pebble.Batch, p current, w *driver.Write, next stored) error {
	if p.deleted {
		if err := s.deleteTombstone(batch, w.UUID, p.revision); err != nil {
			return err
		}
	}
	if err := changeEntries(batch, s.id, w.UUID, p.entries, next.entries); err != nil {
		return err
	}
	return setRecord(batch, s.id, w.UUID, next)
}

// writeTombstone replaces the current record or tombstone by a tombstone.
func (s *store) writeTombstone(batch *pebble.Batch, p current, w *driver.Write) error {
	switch {
	case p.live:
		if err := changeEntries(batch, s.id, w.UUID, p.entries, nil); err != nil {
			return err
		}
		if err := batch.Delete(appendUUIDKey(nil, s.id, kindObject, w.UUID), nil); err != nil {
			return err
		}
	case p.deleted:
		if err := s.deleteTombstone(batch, w.UUID, p.revision); err != nil {
			return err
		}
	}
	if err := batch.Set(appendRevisionKey(nil, s.id, kindRevision, w.Revision, w.UUID), nil, nil); err != nil {
		return err
	}
	return batch.Set(appendUUIDKey(nil, s.id, kindTombstone, w.UUID), encodeTombstone(w.Revision, w.Owner), nil)
}

// deleteTombstone deletes a tombstone.
func (s *store) deleteTombstone(batch *pebble.Batch, uuid string, revision uint64) error {
	if err := batch.Delete(appendRevisionKey(nil, s.id, kindRevision, revision, uuid), nil); err != nil {
		return err
	}
	return batch.Delete(appendUUIDKey(nil, s.id, kindTombstone, uuid), nil)
}

// current is the state of a record before a write.
type current struct {
	live, deleted bool
	revision      uint64
	entries       []byte
	arrays        []byte // in chunks; see chunk.Encode
}

// current reads a record whose lock is held. created says that most likely no record exists.
func (s *store) current(uuid string, created bool) (p current, err error) {
	buf := s.b.keys.get()
	defer s.b.keys.put(buf)
	*buf = appendUUIDKey(*buf, s.id, kindObject, uuid)
	if created {
		if found, err := s.b.holds(buf); err != nil || !found {
			return s.deleted(buf, uuid, err)
		}
	}
	value, closer, err := s.b.db.Get(*buf)
	if err == nil {
		r, err := decodeRecord(value)
		p = current{live: true, revision: r.revision, entries: bytes.Clone(r.entries),
			arrays: bytes.Clone(r.arrays)}
		return p, errors.Join(err, wrapReadError(closer.Close()))
	}
	if !errors.Is(err, pebble.ErrNotFound) {
		return p, wrapReadError(err)
	}
	return s.deleted(buf, uuid, nil)
}

// deleted reads the tombstone of a record that does not exist, unless reading the record has failed.
func (s *store) deleted(buf *[]byte, uuid string, failed error) (current, error) {
	if failed != nil || !s.hasTombstones.Load() {
		return current{}, failed
	}
	(*buf)[prefixSize-1] = kindTombstone
	record, ok, err := s.getTombstone(*buf, uuid)
	return current{deleted: ok, revision: record.Revision}, err
}

// holds reports whether a key exists. Unlike Pebble's Get it also asks the filters of the tables in the lowest level,
// which have most keys: with a random key that does not exist, Get reads and decompresses a block there. buf has the
// key.
func (b *Backend) holds(buf *[]byte) (bool, error) {
	n := len(*buf)
	*buf = append(*buf, 0)
	after := *buf
	*buf = after[:n]
	it, err := b.db.NewIter(&pebble.IterOptions{
		KeyTypes: pebble.IterKeyTypePointsOnly, LowerBound: after[:n:n], UpperBound: after, UseL6Filters: true,
	})
	if err != nil {
		return false, wrapReadError(err)
	}
	found := it.SeekPrefixGE(after[:n:n])
	return found, wrapReadError(it.Close())
}
