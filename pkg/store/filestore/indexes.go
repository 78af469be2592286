package filestore

import (
	"bytes"
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"belfry/pkg/store/driver"
)

// owns reports whether the handle lists an index.
func (s *store) owns(id uint32) bool {
	for _, ix := range s.own {
		if ix.ID == id {
			return true
		}
	}
	return false
}

// beforeWrite makes the indexes incomplete that the handle does not list: its writes lack their keys.
func (s *store) beforeWrite(ctx context.Context) error {
	return s.first.Do(ctx, func() error {
		s.b.catalog.Lock()
		defer s.b.catalog.Unlock()
		def := s.def
		var changed bool
		if def.Indexes, changed = def.Indexes.Unlist(s.owns); !changed {
			return nil
		}
		return s.b.save(ctx, s.records, def, nil, true)
	})
}

// Building implements driver.Indexes.
func (s *store) Building(ctx context.Context) (builds []driver.Build, err error) {
	defer s.b.health.recoverFatal(&err)
	if err := s.b.ready(ctx); err != nil {
		return nil, err
	}
	s.b.catalog.Lock()
	defer s.b.catalog.Unlock()
	def := s.def
	var changed bool
	if builds, def.Indexes, changed = def.Indexes.Building(s.own); changed {
		err = s.b.save(ctx, s.records, def, nil, true)
	}
	return builds, err
}

// Complete implements driver.Indexes. The catalog is synced after all entries, which are before it in the log.
func (s *store) Complete(ctx context.Context, builds []driver.Build) (err error) {
	defer s.b.health.recoverFatal(&err)
	if err := s.b.ready(ctx); err != nil {
		return err
	}
	s.b.catalog.Lock()
	defer s.b.catalog.Unlock()
	def := s.def
	var changed bool
	if def.Indexes, changed, err = def.Indexes.Complete(s.own, builds); err != nil || !changed {
		return err
	}
	return s.b.save(ctx, s.records, def, nil, true)
}

// Release implements driver.Indexes.
func (s *store) Release(ctx context.Context) (err error) {
	defer s.b.health.recoverFatal(&err)
	if err := s.b.ready(ctx); err != nil {
		return err
	}
	s.b.catalog.Lock()
	defer s.b.catalog.Unlock()
	def := s.def
	var removed driver.Catalog
	if def.Indexes, removed = def.Indexes.Release(s.owns); len(removed) == 0 {
		return nil
	}
	return s.b.save(ctx, s.records, def, removed, true)
}

// Reindex implements driver.Indexes. The batches of records are applied in the order in which they are enqueued, and
// the last one is synced: all that are before it in the log are, too.
func (s *store) Reindex(ctx context.Context, uuids []string) (err error) {
	defer s.b.health.recoverFatal(&err)
	if err := s.b.ready(ctx); err != nil {
		return err
	}
	if err := s.beforeWrite(ctx); err != nil {
		return err
	}
	var enqueued []*request
	for _, uuid := range uuids {
		r, err := s.reindex(ctx, uuid)
		if err == nil && r != nil {
			err = s.b.committer.enqueue(ctx, r)
			enqueued = append(enqueued, r)
		}
		if err != nil {
			return err
		}
	}
	if len(enqueued) == 0 {
		return nil
	}
	last := &request{batch: s.b.db.NewBatch(), durable: true}
	if err := last.batch.LogData(nil, nil); err != nil {
		return s.b.health.fail(err)
	}
	for _, r := range enqueued {
		if err := s.b.committer.await(ctx, r); err != nil {
			return err
		}
	}
	return s.b.committer.commit(ctx, last)
}

// reindex assembles the batch that replaces the entries of a record, holding the lock of its UUID like a Put, so that
// the record is still as it was read. nil: there is nothing to change.
func (s *store) reindex(ctx context.Context, uuid string) (r *request, err error) {
	lock := s.stripe(uuid).lock
	if err := lock.acquire(ctx, s.b.health); err != nil {
		return nil, err
	}
	defer func() {
		if r == nil {
			lock.release()
		}
	}()
	value, closer, err := s.b.db.Get(appendUUIDKey(nil, s.id, kindObject, uuid))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, wrapReadError(err)
	}
	batch, err := s.reentered(uuid, value) // with the lock, chunks are as the value is
	if err = errors.Join(err, wrapReadError(closer.Close())); err != nil || batch == nil {
		return nil, err
	}
	return &request{batch: batch, lock: lock}, nil
}

// reentered returns the batch that gives a record the entries which its body has; nil if it has them.
func (s *store) reentered(uuid string, value []byte) (*pebble.Batch, error) {
	r, err := decodeRecord(value)
	if err != nil {
		return nil, err
	}
	var keys []driver.Key
	if s.computeKeys != nil { // else it has no indexes
		body := r.body
		if len(r.arrays) > 0 {
			if body, err = s.joined(s.b.db, uuid, &r); err != nil {
				return nil, err
			}
		}
		keys = s.computeKeys(body)
	}
	old := r.entries
	if r.entries, err = encodeEntries(s.indexes, keys); err != nil || bytes.Equal(old, r.entries) {
		return nil, err
	}
	batch := s.b.db.NewBatch()
	if err := changeEntries(batch, s.id, uuid, old, r.entries); err != nil {
		return nil, s.b.health.fail(err)
	}
	if err := setRecord(batch, s.id, uuid, r); err != nil {
		return nil, s.b.health.fail(err)
	}
	return batch, nil
}
