package dynamostore

import (
	"context"
	"hash/fnv"
	"sync"
	"sync/atomic"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// store is one store of a Backend.
type store struct {
	b       *Backend
	table   string
	indexes map[string]index
	traces  traces
	sure    sureTags
	count   counter
}

var _ driver.Store = (*store)(nil)

func newStore(b *Backend, table string, def definition) *store {
	s := &store{b: b, table: table, indexes: make(map[string]index)}
	for _, ix := range def.Indexes {
		s.indexes[ix.Name] = ix
	}
	return s
}

// Get is part of driver.Store.
func (s *store) Get(ctx context.Context, uuid string) (driver.Record, bool, error) {
	if err := s.ready(ctx, uuid); err != nil {
		return driver.Record{}, false, err
	}
	r, err := s.read(ctx, uuid)
	if err != nil || r == nil {
		return driver.Record{}, false, err
	}
	s.traces.put(s.traceOf(r))
	return r.record(), true, nil
}

// maxUUID is what every key that a uuid is part of has room for.
const maxUUID = 500

func (s *store) ready(ctx context.Context, uuid string) error {
	if err := ctx.Err(); err != nil {
		return canceled(err)
	}
	if uuid == "" || len(uuid) > maxUUID {
		return errs.New(errs.Invalid, "a uuid of %d bytes: DynamoDB's keys have room for 1 to %d", len(uuid), maxUUID)
	}
	return nil
}

// trace is what a Put must know of the record that it replaces. Whoever
// changes an object has just read it, so the trace of that reading is at hand.
// It can't be out of date: a write holds only if the value is still the one
// that its trace is of.
type trace struct {
	uuid     string
	revision uint64
	value    cell // without its data
	entries  []entry
	unsure   map[tag]bool // writes whose entries may not all be there; see confirm
	weight   int          // bytes of events in the item
}

func (s *store) traceOf(r *record) *trace {
	t := &trace{uuid: r.uuid, revision: r.revision, value: r.value, entries: r.entries, weight: r.weight(), unsure: s.unsure(r)}
	t.value.data = nil
	return t
}

const (
	traceSlots = 1024
	traceSize  = 8 << 10 // of the keys of one that is kept
)

// traces keeps those of the records that were read last, roughly.
type traces [traceSlots]atomic.Pointer[trace]

func (ts *traces) slot(uuid string) *atomic.Pointer[trace] {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uuid))
	return &ts[h.Sum32()%traceSlots]
}

func (ts *traces) put(t *trace) {
	size := 0
	for _, e := range t.entries {
		size += len(e.key) + len(e.tag)
	}
	if size > traceSize {
		ts.forget(t.uuid)
		return
	}
	ts.slot(t.uuid).Store(t)
}

func (ts *traces) get(uuid string, revision uint64) *trace {
	t := ts.slot(uuid).Load()
	if t == nil || t.uuid != uuid || t.revision != revision {
		return nil
	}
	return t
}

func (ts *traces) forget(uuid string) { ts.slot(uuid).Store(nil) }

// sureTags are writes whose entries are known to be there.
type sureTags struct {
	mu   sync.Mutex
	tags map[tag]struct{}
}

// sureMost bounds them. What is forgotten is made sure of again.
const sureMost = 50_000

func (s *sureTags) add(tags ...tag) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tags == nil || len(s.tags) >= sureMost {
		s.tags = make(map[tag]struct{})
	}
	for _, t := range tags {
		s.tags[t] = struct{}{}
	}
}

func (s *sureTags) has(t tag) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.tags[t]
	return ok
}

// unsure returns the writes of a record whose entries may not all be there:
// those whose events wait. Entries are written beside the record, and no event
// leaves its record before its write's entries are there.
func (s *store) unsure(r *record) map[tag]bool {
	var tags map[tag]bool
	for _, c := range r.events {
		if !s.sure.has(c.tag) {
			if tags == nil {
				tags = make(map[tag]bool)
			}
			tags[c.tag] = true
		}
	}
	return tags
}
