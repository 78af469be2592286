package filestore

import (
	"context"
	"errors"
	"hash/maphash"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"belfry/pkg/store/driver"
)

// stripes is the number of locks that the UUIDs of a store share. Writes of two
// UUIDs with the same lock wait for each other only until the batch is applied.
const stripes = 256

// stripe is what UUIDs share.
type stripe struct {
	lock    lock
	written atomic.Uint64 // the last group with a write of these UUIDs
}

// store is one store of a Backend.
type store struct {
	b        *Backend
	id       uint32
	indexes  map[string]index
	seed     maphash.Seed
	stripes  [stripes]stripe
	counters counters
	clear    lock // serializes Clear, so that an event is counted once

	// hasTombstones is set before the first tombstone is written, and by Open
	// when there are some. Until then creates need not read one.
	hasTombstones atomic.Bool
}

var _ driver.Store = (*store)(nil)

func newStore(b *Backend, def definition) (*store, error) {
	s := &store{b: b, id: def.ID, indexes: make(map[string]index), seed: maphash.MakeSeed(), clear: newLock()}
	for i := range s.stripes {
		s.stripes[i].lock = newLock()
	}
	for _, ix := range def.Indexes {
		s.indexes[ix.Name] = ix
	}
	value, err := b.read(appendPrefix(nil, s.id, kindCount))
	if err != nil {
		return nil, err
	}
	s.counters = decodeCounters(appendPrefix(nil, s.id, kindCount), value)
	hasTombstones, err := b.hasPrefix(appendPrefix(nil, s.id, kindTombstone))
	s.hasTombstones.Store(hasTombstones)
	return s, err
}

// Get implements driver.Store. It allocates nothing but the body.
func (s *store) Get(ctx context.Context, uuid string) (_ driver.Record, _ bool, err error) {
	defer s.b.health.recoverFatal(&err)
	if err := s.b.ready(ctx); err != nil {
		return driver.Record{}, false, err
	}
	record, ok, err := s.latest(ctx, uuid)
	if err == nil {
		err = s.awaitRecord(ctx, uuid)
	}
	if err != nil {
		return driver.Record{}, false, err
	}
	return record, ok, nil
}

// latest reads a record as it was last written, which may not be synced yet.
func (s *store) latest(ctx context.Context, uuid string) (driver.Record, bool, error) {
	buf := s.b.keys.get()
	defer s.b.keys.put(buf)
	*buf = appendUUIDKey(*buf, s.id, kindObject, uuid)

	record, ok, err := s.getLive(*buf, uuid)
	if ok || err != nil {
		return record, ok, err
	}
	// A write may replace the record by a tombstone, or the reverse, between the
	// two reads: only with the lock held is the absence of both conclusive.
	lock := s.stripe(uuid).lock
	if err := lock.acquire(ctx, s.b.health); err != nil {
		return driver.Record{}, false, err
	}
	defer lock.release()
	if record, ok, err = s.getLive(*buf, uuid); ok || err != nil {
		return record, ok, err
	}
	(*buf)[prefixSize-1] = kindTombstone
	return s.getTombstone(*buf, uuid)
}

func (s *store) getLive(key []byte, uuid string) (driver.Record, bool, error) {
	value, closer, err := s.b.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return driver.Record{}, false, nil
	}
	if err != nil {
		return driver.Record{}, false, wrapReadError(err)
	}
	record, err := liveRecord(uuid, value)
	if err := errors.Join(err, wrapReadError(closer.Close())); err != nil {
		return driver.Record{}, false, err
	}
	return record, true, nil
}

// liveRecord decodes a stored value and copies the body.
func liveRecord(uuid string, value []byte) (driver.Record, error) {
	r, err := decodeRecord(value)
	if err != nil {
		return driver.Record{}, err
	}
	body := make([]byte, len(r.body))
	copy(body, r.body)
	return driver.Record{UUID: uuid, Revision: r.revision, Body: body}, nil
}

func (s *store) getTombstone(key []byte, uuid string) (driver.Record, bool, error) {
	value, closer, err := s.b.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return driver.Record{}, false, nil
	}
	if err != nil {
		return driver.Record{}, false, wrapReadError(err)
	}
	revision, owner, err := decodeTombstone(value)
	if err := errors.Join(err, wrapReadError(closer.Close())); err != nil {
		return driver.Record{}, false, err
	}
	return driver.Record{UUID: uuid, Revision: revision, Deleted: true, Owner: owner}, true, nil
}

func (s *store) stripe(uuid string) *stripe {
	return &s.stripes[maphash.String(s.seed, uuid)%stripes]
}
