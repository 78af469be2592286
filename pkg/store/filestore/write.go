package filestore

import (
	"bytes"
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// Put is part of driver.Store.
func (s *store) Put(ctx context.Context, w driver.Write) (err error) {
	defer s.b.rescue(&err)
	if err := s.b.ready(ctx); err != nil {
		return err
	}
	entries, err := encodeEntries(s.indexes, w.Keys)
	if err != nil {
		return err
	}
	r, err := s.prepare(ctx, &w, entries)
	if err != nil {
		return err
	}
	return s.b.commit(ctx, r)
}

// prepare puts a write together, under the lock of its uuid so that nothing
// comes between comparing and changing. The committer gives the lock free as
// soon as the write is visible, which is before it is on the disk.
func (s *store) prepare(ctx context.Context, w *driver.Write, entries []byte) (r *request, err error) {
	lock := s.stripe(w.UUID)
	if err := lock.take(ctx, s.b.health); err != nil {
		return nil, err
	}
	defer func() {
		if r == nil {
			lock.free()
		}
	}()
	if w.Body == nil {
		s.buried.Store(true)
	}
	p, err := s.present(w.UUID)
	if err != nil {
		return nil, err
	}
	if !p.allows(w) {
		return nil, errs.New(errs.Mismatch, "the object was changed by someone else meanwhile")
	}
	batch := s.b.db.NewBatch()
	does, err := s.change(batch, p, w, entries)
	if err != nil {
		return nil, s.b.fail(err)
	}
	return &request{batch: batch, does: does, lock: lock, durable: true}, nil
}

// allows reports whether the precondition of a write holds.
func (p *present) allows(w *driver.Write) bool {
	if w.FirstRevision() <= p.revision {
		return false
	}
	if w.IfRevision == 0 {
		return !p.live
	}
	return p.live && p.revision == w.IfRevision
}

// change puts all that a write changes into a batch.
func (s *store) change(batch *pebble.Batch, p present, w *driver.Write, entries []byte) (effect, error) {
	does := effect{s: s}
	if w.Event.ID != "" {
		does.pending, does.event = 1+int64(len(w.ExtraEvents)), w.FirstRevision()
	}
	var err error
	if w.Body == nil {
		err = s.bury(batch, p, w)
		if p.live {
			does.records = -1
		}
	} else {
		err = s.keep(batch, p, w, entries)
		if !p.live {
			does.records = 1
		}
	}
	if err == nil && w.Event.ID != "" {
		err = setEvent(batch, s.id, w.UUID, w.FirstRevision(), &w.Event)
	}
	for i := range w.ExtraEvents {
		if err == nil {
			err = setEvent(batch, s.id, w.UUID, w.FirstRevision()+1+uint64(i), &w.ExtraEvents[i])
		}
	}
	return does, err
}

// keep writes a live record in the place of whatever is there.
func (s *store) keep(batch *pebble.Batch, p present, w *driver.Write, entries []byte) error {
	if p.deleted {
		if err := s.exhume(batch, w.UUID, p.revision); err != nil {
			return err
		}
	}
	if err := changeEntries(batch, s.id, w.UUID, p.entries, entries); err != nil {
		return err
	}
	return setRecord(batch, s.id, w.UUID, stored{revision: w.Revision, entries: entries, body: w.Body})
}

// bury writes a tombstone in the place of whatever is there.
func (s *store) bury(batch *pebble.Batch, p present, w *driver.Write) error {
	switch {
	case p.live:
		if err := changeEntries(batch, s.id, w.UUID, p.entries, nil); err != nil {
			return err
		}
		if err := batch.Delete(appendUUIDKey(nil, s.id, kindObject, w.UUID), nil); err != nil {
			return err
		}
	case p.deleted:
		if err := s.exhume(batch, w.UUID, p.revision); err != nil {
			return err
		}
	}
	if err := batch.Set(appendRevisionKey(nil, s.id, kindRevision, w.Revision, w.UUID), nil, nil); err != nil {
		return err
	}
	return batch.Set(appendUUIDKey(nil, s.id, kindTombstone, w.UUID), encodeTombstone(w.Revision), nil)
}

// exhume takes a tombstone away.
func (s *store) exhume(batch *pebble.Batch, uuid string, revision uint64) error {
	if err := batch.Delete(appendRevisionKey(nil, s.id, kindRevision, revision, uuid), nil); err != nil {
		return err
	}
	return batch.Delete(appendUUIDKey(nil, s.id, kindTombstone, uuid), nil)
}

// present is what Put must know of a record before it changes it.
type present struct {
	live, deleted bool
	revision      uint64
	entries       []byte
}

// present reads a record whose lock is held.
func (s *store) present(uuid string) (p present, err error) {
	buf := s.b.keys.get()
	defer s.b.keys.put(buf)
	*buf = appendUUIDKey(*buf, s.id, kindObject, uuid)
	value, closer, err := s.b.db.Get(*buf)
	if err == nil {
		r, err := decodeRecord(value)
		p = present{live: true, revision: r.revision, entries: bytes.Clone(r.entries)}
		return p, errors.Join(err, readError(closer.Close()))
	}
	if !errors.Is(err, pebble.ErrNotFound) {
		return p, readError(err)
	}
	if !s.buried.Load() {
		return p, nil
	}
	(*buf)[prefixSize-1] = kindTombstone
	record, ok, err := s.getTombstone(*buf, uuid)
	return present{deleted: ok, revision: record.Revision}, err
}
