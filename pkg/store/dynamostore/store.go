package dynamostore

import (
	"context"
	"hash/fnv"
	"slices"
	"sync"
	"sync/atomic"

	"belfry/pkg/errs"
	"belfry/pkg/store/chunk"
	"belfry/pkg/store/driver"
)

// memory is the cached state of a table, for all handles of the store in a process.
type memory struct {
	snapshots     snapshots
	indexedWrites indexedWrites
	count         counter
	reads         *driver.Batcher[*itemRead]
}

// store is a handle of a store.
type store struct {
	records
	indexes     ownIndexes
	computeKeys func(body []byte) []driver.Key
	arrays      chunk.Arrays
	first       *driver.FirstWrite
	*memory
}

var (
	_ driver.Store      = (*store)(nil)
	_ driver.ManyGetter = (*store)(nil)
)

func newStore(b *Backend, table string, own []index, spec *driver.Spec) *store {
	known := b.memoryOf(table)
	s := &store{
		records: records{b, table, known.reads}, computeKeys: spec.Keys,
		indexes: ownIndexes{own, make(map[string]index, len(own))},
		arrays:  chunk.ArraysOf(spec), first: driver.NewFirstWrite(), memory: known,
	}
	s.arrays.Names = slices.DeleteFunc(slices.Clone(s.arrays.Names),
		func(name string) bool { return len(name) > maxArrayName })
	for _, ix := range own {
		s.indexes.byName[ix.Name] = ix
	}
	return s
}

// ownIndexes are the indexes that a handle lists.
type ownIndexes struct {
	all    []index
	byName map[string]index
}

// memoryOf returns the cached state of a table.
func (b *Backend) memoryOf(table string) *memory {
	fresh := &memory{reads: b.newReads(table)}
	known, _ := b.memories.LoadOrStore(table, fresh)
	return known.(*memory)
}

// Get implements driver.Store.
func (s *store) Get(ctx context.Context, uuid string) (driver.Record, bool, error) {
	if err := s.checkUUID(ctx, uuid); err != nil {
		return driver.Record{}, false, err
	}
	r, err := s.read(ctx, uuid)
	if err != nil || r == nil {
		return driver.Record{}, false, err
	}
	s.snapshots.put(s.snapshotOf(r))
	return r.record(), true, nil
}

// GetMany implements driver.ManyGetter.
func (s *store) GetMany(ctx context.Context, uuids []string) ([]driver.Record, error) {
	found, err := s.readMany(ctx, uuids, withoutEvents)
	if err != nil {
		return nil, err
	}
	records := make([]driver.Record, 0, len(found))
	for _, r := range found {
		if one := r.record(); !one.Deleted {
			records = append(records, one)
		}
	}
	return records, nil
}

// maxUUID is the maximum length of a UUID that fits in all keys.
const maxUUID = 500

func (s *store) checkUUID(ctx context.Context, uuid string) error {
	if err := ctx.Err(); err != nil {
		return errCanceled(err)
	}
	if uuid == "" || len(uuid) > maxUUID {
		return errs.New(errs.Invalid, "a UUID has %d bytes; this backend supports 1 to %d", len(uuid), maxUUID)
	}
	return nil
}

// snapshot is the part of a replaced record that a Put needs. An object is
// usually read just before it is changed, so the snapshot is cached by then. An
// outdated one does no harm: the condition of a write includes that the value has
// not changed.
type snapshot struct {
	uuid        string
	revision    uint64
	value       cell // without its data
	entries     []entry
	unconfirmed map[tag]bool // writes whose entries may be missing; see confirmEntries
	eventBytes  int          // bytes of events in the item
	chunks      chunkPieces  // those that GetEntries has read
}

func (s *store) snapshotOf(r *record) *snapshot {
	t := &snapshot{uuid: r.uuid, revision: r.revision, value: r.value, entries: r.entries, eventBytes: r.eventBytes(),
		unconfirmed: s.unconfirmed(r)}
	t.value.data = nil
	return t
}

const (
	snapshotSlots = 1024
	maxSnapshot   = 8 << 10 // of the keys and chunks of a cached snapshot
)

// snapshots is a lossy cache of the snapshots of the records that were read last.
type snapshots [snapshotSlots]atomic.Pointer[snapshot]

func (ts *snapshots) slot(uuid string) *atomic.Pointer[snapshot] {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uuid))
	return &ts[h.Sum32()%snapshotSlots]
}

func (ts *snapshots) put(t *snapshot) {
	size := 0
	for _, e := range t.entries {
		size += len(e.key) + len(e.tag)
	}
	for i := range t.value.arrays {
		size += len(t.value.arrays[i].chunks) * (len(tag{}) + 2)
	}
	for sort, piece := range t.chunks {
		size += len(sort) + len(piece)
	}
	if size > maxSnapshot && t.chunks != nil {
		t.chunks = nil
		ts.put(t)
		return
	}
	if size > maxSnapshot {
		ts.forget(t.uuid)
		return
	}
	ts.slot(t.uuid).Store(t)
}

func (ts *snapshots) get(uuid string, revision uint64) *snapshot {
	t := ts.slot(uuid).Load()
	if t == nil || t.uuid != uuid || t.revision != revision {
		return nil
	}
	return t
}

// has reports whether the record of a UUID was read or written lately: it exists, or is a
// tombstone.
func (ts *snapshots) has(uuid string) bool {
	t := ts.slot(uuid).Load()
	return t != nil && t.uuid == uuid
}

func (ts *snapshots) forget(uuid string) { ts.slot(uuid).Store(nil) }

// indexedWrites is a set of writes whose entries are known to exist.
type indexedWrites struct {
	mu   sync.Mutex
	tags map[tag]struct{}
}

// maxIndexedWrites bounds the set. The entries of forgotten writes are written again.
const maxIndexedWrites = 50_000

func (s *indexedWrites) add(tags ...tag) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tags == nil || len(s.tags) >= maxIndexedWrites {
		s.tags = make(map[tag]struct{})
	}
	for _, t := range tags {
		s.tags[t] = struct{}{}
	}
}

func (s *indexedWrites) has(t tag) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.tags[t]
	return ok
}

// unconfirmed returns the writes of a record whose entries may be missing: those whose
// events are pending. Entries are written concurrently with the record, and no event
// is cleared before the entries of its write exist.
func (s *store) unconfirmed(r *record) map[tag]bool {
	var tags map[tag]bool
	for _, c := range r.events {
		if !s.indexedWrites.has(c.tag) {
			if tags == nil {
				tags = make(map[tag]bool)
			}
			tags[c.tag] = true
		}
	}
	return tags
}
