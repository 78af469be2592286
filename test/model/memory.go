// Package model is an explicit-state model checker for workers. It runs them on
// a backend in memory, each of whose calls is a step, and explores the
// interleavings of the steps of clients and workers: all of them (Explore), or
// random ones (Simulate). See Checker.
package model

import (
	"bytes"
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"sync"

	"belfry/pkg/errs"
	"belfry/pkg/store/chunk"
	"belfry/pkg/store/driver"
)

// Memory is a backend that keeps stores in memory, for tests. It satisfies the
// contract of package driver except for durability.
type Memory struct {
	mu     sync.Mutex
	tables map[string]*memoryTable
	least  int // bytes of an array whose entries are read and written alone
}

// NewMemory returns an empty backend.
func NewMemory() *Memory { return &Memory{tables: map[string]*memoryTable{}, least: chunk.Least} }

// row is a record with its index keys and pending events. Rows are immutable.
type row struct {
	driver.Record
	keys   []driver.Key // of the handle that wrote it
	events []driver.Pending
	hash   uint64 // of Record
}

// memoryTable is what the handles of a store share.
type memoryTable struct {
	mu      *sync.Mutex
	name    string
	rows    map[string]*row
	indexes driver.Catalog
	last    uint32 // number of an index
	least   int    // see Memory
}

// memoryStore is a handle of a store.
type memoryStore struct {
	*memoryTable
	spec   driver.Spec
	own    []driver.CatalogIndex
	writes bool // the indexes that it does not list are incomplete
}

var (
	_ driver.Backend = (*Memory)(nil)
	_ driver.Store   = (*memoryStore)(nil)
)

// Open implements driver.Backend.
func (m *Memory) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := m.open(ctx, spec)
	if err != nil {
		return nil, err
	}
	return s, err
}

func (m *Memory) open(ctx context.Context, spec driver.Spec) (*memoryStore, error) {
	if err := m.Ping(ctx); err != nil {
		return nil, err
	}
	s := m.handle(spec)
	if spec.Online {
		return s, nil
	}
	if err := driver.BuildIndexes(ctx, s); err != nil {
		return nil, err
	}
	return s, s.Release(ctx)
}

func (m *Memory) handle(spec driver.Spec) *memoryStore {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.tables[spec.Name]
	isNew := t == nil
	if isNew {
		t = &memoryTable{mu: &m.mu, name: spec.Name, rows: map[string]*row{}, least: m.least}
		m.tables[spec.Name] = t
	}
	s := &memoryStore{memoryTable: t, spec: spec}
	t.indexes, s.own, _ = t.indexes.List(spec.Indexes, isNew, func() uint32 { t.last++; return t.last })
	return s
}

// Stores implements driver.Backend.
func (m *Memory) Stores(ctx context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.tables)), canceled(ctx)
}

// Ping implements driver.Backend.
func (m *Memory) Ping(ctx context.Context) error { return canceled(ctx) }

// Close implements driver.Backend. The stores keep their contents.
func (m *Memory) Close() error { return nil }

func canceled(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return errs.Wrap(err, errs.Canceled, "the caller canceled")
	}
	return nil
}

func (s *memoryStore) Get(ctx context.Context, uuid string) (driver.Record, bool, error) {
	if err := canceled(ctx); err != nil {
		return driver.Record{}, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.rows[uuid]
	if !ok {
		return driver.Record{}, false, nil
	}
	return r.Record, true, nil
}

func (s *memoryStore) Put(ctx context.Context, w driver.Write) error {
	if err := canceled(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beforeWrite()
	w, err := s.whole(w)
	if err != nil {
		return err
	}
	return s.put(w)
}

func (s *memoryStore) put(w driver.Write) error {
	if err := s.check(w); err != nil {
		return err
	}
	next := newRow(w)
	s.putInChunks(next)
	if r := s.rows[w.UUID]; r != nil {
		next.events = slices.Clone(r.events)
	}
	for _, e := range w.Events() {
		e.Payload = bytes.Clone(e.Payload)
		next.events = append(next.events, e)
	}
	s.rows[w.UUID] = next
	return nil
}

// check reports whether a write's preconditions hold.
func (s *memoryTable) check(w driver.Write) error {
	r := s.rows[w.UUID]
	live := r != nil && !r.Deleted
	switch {
	case w.IfRevision == 0 && live, w.IfRevision != 0 && (!live || r.Revision != w.IfRevision):
		return errs.New(errs.Mismatch, "the precondition does not hold")
	case r != nil && w.FirstRevision() <= r.Revision:
		return errs.New(errs.Mismatch, "revision %d is not greater than %d", w.FirstRevision(), r.Revision)
	}
	return nil
}

func newRow(w driver.Write) *row {
	r := &row{
		Record: driver.Record{UUID: w.UUID, Revision: w.Revision, Body: bytes.Clone(w.Body), Deleted: w.Body == nil},
		keys:   cloneKeys(w.Keys),
	}
	if r.Deleted {
		r.Owner = w.Owner
	}
	r.hash = hashRecord(r.Record)
	return r
}

func cloneKeys(keys []driver.Key) []driver.Key {
	cloned := make([]driver.Key, len(keys))
	for i, k := range keys {
		cloned[i] = driver.Key{Index: k.Index, Parts: make([][]byte, len(k.Parts))}
		for p, part := range k.Parts {
			cloned[i].Parts[p] = bytes.Clone(part)
		}
	}
	return cloned
}

func (s *memoryStore) Pending(ctx context.Context, after []byte, limit int) ([]driver.Pending, []byte, error) {
	if err := canceled(ctx); err != nil {
		return nil, nil, err
	}
	if err := driver.CheckLimit(limit); err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []driver.Pending
	for _, uuid := range s.uuids() {
		for _, e := range s.rows[uuid].events {
			if bytes.Compare(placeOf(e), after) <= 0 {
				continue
			}
			if len(found) == limit {
				return found, placeOf(found[limit-1]), nil
			}
			found = append(found, e)
		}
	}
	return found, nil, nil
}

// placeOf is the sort key of a pending event. A uuid contains no NUL.
func placeOf(e driver.Pending) []byte {
	return binary.BigEndian.AppendUint64(append([]byte(e.UUID), 0), e.Revision)
}

func (s *memoryStore) Clear(ctx context.Context, events []driver.Pending) error {
	if err := canceled(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		if r := s.rows[e.UUID]; r != nil {
			next := *r
			next.events = slices.DeleteFunc(slices.Clone(r.events), func(p driver.Pending) bool { return p.ID == e.ID })
			s.rows[e.UUID] = &next
		}
	}
	return nil
}

func (s *memoryStore) Purge(ctx context.Context, before uint64, limit int) (int, error) {
	if err := canceled(ctx); err != nil {
		return 0, err
	}
	if err := driver.CheckLimit(limit); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, uuid := range s.uuids() {
		if r := s.rows[uuid]; n < limit && r.Deleted && r.Revision < before && len(r.events) == 0 {
			delete(s.rows, uuid)
			n++
		}
	}
	return n, nil
}

func (s *memoryStore) Count(ctx context.Context) (records, pending int64, err error) {
	if err := canceled(ctx); err != nil {
		return 0, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rows {
		if !r.Deleted {
			records++
		}
		pending += int64(len(r.events))
	}
	return records, pending, nil
}

func (s *memoryStore) uuids() []string { return slices.Sorted(maps.Keys(s.rows)) }
