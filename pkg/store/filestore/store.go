package filestore

import (
	"context"
	"errors"
	"hash/maphash"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"belfry/pkg/store/driver"
)

// stripes is how many locks the uuids of a store share. Two uuids that meet on
// one wait for each other only while a batch is put together.
const stripes = 256

// store is one store of a Backend.
type store struct {
	b       *Backend
	id      uint32
	indexes map[string]index
	seed    maphash.Seed
	locks   [stripes]lock
	tally   tally
	clear   lock // an event is counted off once

	// buried is set before the store gets its first tombstone, and when it is
	// opened with some. Until then nobody has to look for one, which spares
	// every creation a look-up.
	buried atomic.Bool
}

var _ driver.Store = (*store)(nil)

func newStore(b *Backend, def definition) (*store, error) {
	s := &store{b: b, id: def.ID, indexes: make(map[string]index), seed: maphash.MakeSeed(), clear: newLock()}
	for i := range s.locks {
		s.locks[i] = newLock()
	}
	for _, ix := range def.Indexes {
		s.indexes[ix.Name] = ix
	}
	value, err := b.read(appendPrefix(nil, s.id, kindCount))
	if err != nil {
		return nil, err
	}
	s.tally = decodeTally(appendPrefix(nil, s.id, kindCount), value)
	buried, err := b.any(appendPrefix(nil, s.id, kindTombstone))
	s.buried.Store(buried)
	return s, err
}

// Get is part of driver.Store. Its only allocation is the body.
func (s *store) Get(ctx context.Context, uuid string) (_ driver.Record, _ bool, err error) {
	defer s.b.rescue(&err)
	if err := s.b.ready(ctx); err != nil {
		return driver.Record{}, false, err
	}
	buf := s.b.keys.get()
	defer s.b.keys.put(buf)
	*buf = appendUUIDKey(*buf, s.id, kindObject, uuid)

	record, ok, err := s.getLive(*buf, uuid)
	if ok || err != nil {
		return record, ok, err
	}
	// It may have become a tombstone, or a tombstone a record, between two
	// looks: only under its lock is nothing surely nothing.
	lock := s.stripe(uuid)
	if err := lock.take(ctx, s.b.health); err != nil {
		return driver.Record{}, false, err
	}
	defer lock.free()
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
		return driver.Record{}, false, readError(err)
	}
	record, err := liveRecord(uuid, value)
	if err := errors.Join(err, readError(closer.Close())); err != nil {
		return driver.Record{}, false, err
	}
	return record, true, nil
}

// liveRecord makes a record of a stored value, with a body of its own.
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
		return driver.Record{}, false, readError(err)
	}
	revision, err := decodeTombstone(value)
	if err := errors.Join(err, readError(closer.Close())); err != nil {
		return driver.Record{}, false, err
	}
	return driver.Record{UUID: uuid, Revision: revision, Deleted: true}, true, nil
}

func (s *store) stripe(uuid string) lock {
	return s.locks[maphash.String(s.seed, uuid)%stripes]
}
