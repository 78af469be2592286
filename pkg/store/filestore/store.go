package filestore

import (
	"context"
	"errors"
	"hash/maphash"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"belfry/pkg/store/chunk"
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

// records is what all handles of a store share.
type records struct {
	b        *Backend
	name     string
	id       uint32
	def      definition // guarded by Backend.catalog
	seed     maphash.Seed
	stripes  [stripes]stripe
	counters counters
	clear    lock // serializes Clear, so that an event is counted once

	// hasTombstones is set before the first tombstone is written, and by Open
	// when there are some. Until then creates need not read one.
	hasTombstones atomic.Bool
}

// store is a handle of a store.
type store struct {
	*records
	own         []index
	arrays      chunk.Arrays
	indexes     map[string]index // own, by name
	computeKeys func(body []byte) []driver.Key
	first       *driver.FirstWrite
}

var _ driver.Store = (*store)(nil)

func newRecords(b *Backend, name string, def definition) (*records, error) {
	r := &records{b: b, name: name, id: def.ID, def: def, seed: maphash.MakeSeed(), clear: newLock()}
	for i := range r.stripes {
		r.stripes[i].lock = newLock()
	}
	value, err := b.read(appendPrefix(nil, r.id, kindCount))
	if err != nil {
		return nil, err
	}
	r.counters = decodeCounters(appendPrefix(nil, r.id, kindCount), value)
	hasTombstones, err := b.hasPrefix(appendPrefix(nil, r.id, kindTombstone))
	r.hasTombstones.Store(hasTombstones)
	return r, err
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
	inChunks := len(value) > 0 && value[0] == formatChunks
	var record driver.Record
	if !inChunks {
		record, err = s.liveRecord(s.b.db, uuid, value)
	}
	if err := errors.Join(err, wrapReadError(closer.Close())); err != nil {
		return driver.Record{}, false, err
	}
	if inChunks {
		return s.getInChunks(key, uuid)
	}
	return record, true, nil
}

// liveRecord decodes a stored value, copies the body, and reads its chunks from where the value was read.
func (s *store) liveRecord(from pebble.Reader, uuid string, value []byte) (driver.Record, error) {
	r, err := decodeRecord(value)
	if err != nil {
		return driver.Record{}, err
	}
	if len(r.arrays) > 0 {
		body, err := s.joined(from, uuid, &r)
		return driver.Record{UUID: uuid, Revision: r.revision, Body: body, InChunks: true}, err
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

func (s *records) stripe(uuid string) *stripe {
	return &s.stripes[maphash.String(s.seed, uuid)%stripes]
}
