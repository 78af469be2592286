package model

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"belfry/pkg/object"
	"belfry/pkg/store/chunk"
	"belfry/pkg/store/driver"
)

var (
	_ driver.EntryStore = (*memoryStore)(nil)
	_ driver.EntryStore = stepStore{}
)

// isApart reports whether an array of a body can be read and written by its entries, as one is that a backend keeps in
// chunks.
func (t *memoryTable) isApart(body []byte, array string) bool {
	value := object.Field(body, array)
	return len(value) >= max(t.least, len("[]")) && value[0] == '[' && len(object.Canonical(value)) == len(value)
}

// GetEntries implements driver.EntryStore.
func (s *memoryStore) GetEntries(ctx context.Context, uuid, array string,
	uuids []string) (driver.Record, *driver.Entries, bool, error) {
	r, found, err := s.Get(ctx, uuid)
	if err != nil || !r.InChunks || !s.isApart(r.Body, array) {
		return r, nil, found, err
	}
	entries := &driver.Entries{Values: map[string][]byte{}}
	object.Elements(object.Field(r.Body, array), func(value []byte) bool {
		entries.Count, entries.Bytes = entries.Count+1, entries.Bytes+len(value)+1
		if name, _ := object.Text(object.Field(value, "uuid")); slices.Contains(uuids, name) {
			entries.Values[name] = value
		}
		return true
	})
	for _, name := range s.spec.Arrays {
		if s.isApart(r.Body, name) {
			r.Body = withValue(r.Body, name, []byte("[]"))
		}
	}
	return r, entries, true, nil
}

// putInChunks notes whether a row has arrays in chunks.
func (s *memoryStore) putInChunks(r *row) {
	before := s.rows[r.UUID]
	arrays := chunk.ArraysOf(&s.spec)
	may := before != nil && before.InChunks || arrays.More == nil || arrays.More()
	r.InChunks = may && slices.ContainsFunc(arrays.Names, func(name string) bool { return s.isApart(r.Body, name) })
}

// withValue returns a body with another value of a field that it has.
func withValue(body []byte, field string, value []byte) []byte {
	from, to, _ := object.Span(body, field)
	return slices.Concat(body[:from], value, body[to:])
}

// holds reports whether the condition of a write holds.
func (t *memoryTable) holds(w driver.Write) bool { return t.check(w) == nil }

// whole returns a write with its whole body. One whose condition does not hold stays as it is.
func (t *memoryTable) whole(w driver.Write) (driver.Write, error) {
	if w.Array == "" || !t.holds(w) {
		return w, nil
	}
	before := t.rows[w.UUID].Body
	if !t.rows[w.UUID].InChunks || !t.isApart(before, w.Array) {
		return w, chunk.ErrWhole(w.UUID, w.Array)
	}
	_ = object.Each(bytes.Clone(w.Body), func(name string, value []byte) bool {
		if former := object.Field(before, name); name != w.Array && string(value) == "[]" && former != nil {
			w.Body = withValue(w.Body, name, former)
		}
		return true
	})
	var values [][]byte
	object.Elements(object.Field(before, w.Array), func(value []byte) bool {
		values = append(values, value)
		return true
	})
	for _, c := range w.Entries {
		at := slices.IndexFunc(values, func(value []byte) bool {
			uuid, _ := object.Text(object.Field(value, "uuid"))
			return uuid == c.UUID
		})
		switch {
		case at < 0 && c.Value != nil:
			values = append(values, c.Value)
		case at >= 0 && c.Value != nil:
			values[at] = c.Value
		case at >= 0:
			values = slices.Delete(values, at, at+1)
		}
	}
	w.Body = withValue(w.Body, w.Array, slices.Concat([]byte{'['}, bytes.Join(values, []byte{','}), []byte{']'}))
	w.Array, w.Entries = "", nil
	return w, nil
}

// GetEntries implements driver.EntryStore, by one step.
func (s stepStore) GetEntries(ctx context.Context, uuid, array string,
	uuids []string) (driver.Record, *driver.Entries, bool, error) {
	ctx = context.WithoutCancel(ctx)
	a := s.c.call(step{"get", s.name, uuid}, func() (a answer) {
		a.record, a.entries, a.found, a.err = s.memoryStore.GetEntries(ctx, uuid, array, uuids)
		return a
	})
	return a.record, a.entries, a.found, a.err
}

// hashEntries is a hash of entries that were read.
func hashEntries(e *driver.Entries) uint64 {
	h := mix(uint64(e.Count), uint64(e.Bytes)) //nolint:gosec // small
	for _, uuid := range slices.Sorted(maps.Keys(e.Values)) {
		h = mixText(mixText(h, uuid), string(e.Values[uuid]))
	}
	return h
}
