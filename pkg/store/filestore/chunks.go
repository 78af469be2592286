package filestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"belfry/pkg/store/chunk"
	"belfry/pkg/store/driver"
)

var _ driver.EntryStore = (*store)(nil)

// appendChunksKey appends what the keys of the chunks of an array begin with. No uuid contains a zero, and no name does
// that can be the field of a mapping.
func appendChunksKey(dst []byte, store uint32, uuid, array string) []byte {
	dst = append(appendUUIDKey(dst, store, kindChunk, uuid), 0)
	return append(append(dst, array...), 0)
}

func chunkKey(store uint32, uuid, array string, n int) []byte {
	return binary.BigEndian.AppendUint32(appendChunksKey(nil, store, uuid, array), uint32(n))
}

// chunkReader reads single chunks of an array.
func (s *records) chunkReader(from pebble.Reader, uuid, array string) chunk.Reader {
	return func(n int) ([]byte, error) {
		value, closer, err := from.Get(chunkKey(s.id, uuid, array, n))
		if errors.Is(err, pebble.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, wrapReadError(err)
		}
		data, err := chunkOf(value)
		data = bytes.Clone(data)
		return data, errors.Join(err, wrapReadError(closer.Close()))
	}
}

func chunkOf(value []byte) ([]byte, error) {
	if len(value) == 0 || value[0] != format {
		return nil, errFormat("a chunk of an array")
	}
	return value[1:], nil
}

// contents reads arrays with all their chunks. These are appended to a buffer, in which they stay.
func (s *records) contents(from pebble.Reader, uuid string, encoded []byte, buffer *[]byte) ([]chunk.Content, error) {
	arrays, err := chunk.Decode(encoded)
	if err != nil {
		return nil, err
	}
	contents := make([]chunk.Content, len(arrays))
	for i, a := range arrays {
		contents[i] = chunk.Content{Array: a, Data: make([][]byte, a.Chunks)}
		if err := s.readChunks(from, uuid, &contents[i], buffer); err != nil {
			return nil, err
		}
	}
	return contents, nil
}

// readChunks reads all chunks of an array in one range.
func (s *records) readChunks(from pebble.Reader, uuid string, c *chunk.Content, buffer *[]byte) (err error) {
	prefix := appendChunksKey(nil, s.id, uuid, c.Name)
	it, err := from.NewIter(prefixBounds(prefix))
	if err != nil {
		return wrapReadError(err)
	}
	defer func() { err = errors.Join(err, wrapReadError(it.Error()), wrapReadError(it.Close())) }()
	all := slices.Grow(*buffer, c.Bytes+8*c.Count)
	for ok := it.First(); ok; ok = it.Next() {
		key, value := it.Key()[len(prefix):], it.Value()
		if len(key) != 4 || int(binary.BigEndian.Uint32(key)) >= len(c.Data) {
			return errFormat("a chunk of an array")
		}
		data, err := chunkOf(value)
		if err != nil {
			return err
		}
		begins := len(all)
		all = append(all, data...)
		c.Data[binary.BigEndian.Uint32(key)] = all[begins:len(all):len(all)]
	}
	*buffer = all
	return nil
}

// joined returns the body of a record whose arrays are in chunks. from is where the record was read.
func (s *records) joined(from pebble.Reader, uuid string, r *stored) ([]byte, error) {
	buffer := s.b.chunks.get()
	defer s.b.chunks.put(buffer)
	contents, err := s.contents(from, uuid, r.arrays, buffer)
	if err != nil {
		return nil, err
	}
	return chunk.Join(r.body, contents)
}

// getInChunks reads a record that had arrays in chunks a moment ago, as of one moment.
func (s *store) getInChunks(key []byte, uuid string) (record driver.Record, found bool, err error) {
	err = s.inSnapshot(key, func(from pebble.Reader, value []byte) error {
		found = true
		record, err = s.liveRecord(from, uuid, value)
		return err
	})
	return record, found, err
}

// inSnapshot calls f with the value of a key and the snapshot of which it is, if there is one.
func (s *store) inSnapshot(key []byte, f func(from pebble.Reader, value []byte) error) (err error) {
	snapshot := s.b.db.NewSnapshot()
	defer func() { err = errors.Join(err, wrapReadError(snapshot.Close())) }()
	value, closer, err := snapshot.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return wrapReadError(err)
	}
	return errors.Join(f(snapshot, value), wrapReadError(closer.Close()))
}

// GetEntries implements driver.EntryStore.
func (s *store) GetEntries(ctx context.Context, uuid, array string, uuids []string) (r driver.Record,
	entries *driver.Entries, found bool, err error) {
	defer s.b.health.recoverFatal(&err)
	if err := s.b.ready(ctx); err != nil {
		return r, nil, false, err
	}
	err = s.inSnapshot(appendUUIDKey(nil, s.id, kindObject, uuid), func(from pebble.Reader, value []byte) error {
		found = true
		head, err := decodeRecord(value)
		if err != nil {
			return err
		}
		arrays, err := chunk.Decode(head.arrays)
		if err != nil {
			return err
		}
		a := chunk.Find(arrays, array)
		if a == nil || a.Outgrown() {
			r, err = s.liveRecord(from, uuid, value)
			return err
		}
		r = driver.Record{UUID: uuid, Revision: head.revision, Body: bytes.Clone(head.body)}
		entries, err = a.Some(uuids, s.chunkReader(from, uuid, array))
		return err
	})
	if err == nil && !found { // there may be a tombstone
		r, found, err = s.Get(ctx, uuid)
		return r, nil, found, err
	}
	if err == nil {
		err = s.awaitRecord(ctx, uuid)
	}
	if err != nil {
		return driver.Record{}, nil, false, err
	}
	return r, entries, true, nil
}

// changedChunks are the chunks of an array that a write changes, by their numbers; nil: the chunk is deleted.
type changedChunks struct {
	array string
	data  map[int][]byte
}

// split sets what a record keeps of a body and of its arrays after a write, and returns the chunks that change with it.
func (s *store) split(p current, w *driver.Write, next *stored) (changed []changedChunks, err error) {
	next.body = w.Body
	if w.Array != "" {
		return s.changeEntries(p, w, next)
	}
	if len(p.arrays) == 0 && !s.arrays.May(w.Body) {
		return nil, nil
	}
	before, err := s.contents(s.b.db, w.UUID, p.arrays, new([]byte))
	if err != nil {
		return nil, err
	}
	head, after := s.arrays.Split(w.Body, before)
	for i := range before {
		if !slices.ContainsFunc(after, func(c chunk.Content) bool { return c.Name == before[i].Name }) {
			gone := chunk.Content{Array: before[i].Array}
			changed = append(changed, changedChunks{gone.Name, gone.Changed(before)})
		}
	}
	for i := range after {
		changed = append(changed, changedChunks{after[i].Name, after[i].Changed(before)})
	}
	next.body, next.arrays = head, chunk.Encode(chunk.Described(after))
	return changed, nil
}

// changeEntries is split for a write that changes entries of an array.
func (s *store) changeEntries(p current, w *driver.Write, next *stored) ([]changedChunks, error) {
	arrays, err := chunk.Decode(p.arrays)
	if err != nil {
		return nil, err
	}
	a := chunk.Find(arrays, w.Array)
	if a == nil {
		return nil, chunk.ErrWhole(w.UUID, w.Array)
	}
	after, chunks, err := a.Change(w.Entries, s.chunkReader(s.b.db, w.UUID, w.Array))
	if err != nil {
		return nil, err
	}
	*a = after
	err = chunk.Place(arrays, w.Body)
	next.arrays = chunk.Encode(arrays)
	return []changedChunks{{w.Array, chunks}}, err
}

// setChunks adds the chunks that a write changes to its batch.
func (s *records) setChunks(batch *pebble.Batch, uuid string, changed []changedChunks) error {
	for _, c := range changed {
		for n, data := range c.data {
			if err := setChunk(batch, chunkKey(s.id, uuid, c.array, n), data); err != nil {
				return err
			}
		}
	}
	return nil
}

func setChunk(batch *pebble.Batch, key, data []byte) error {
	if data == nil {
		return batch.Delete(key, nil)
	}
	op := batch.SetDeferred(len(key), 1+len(data))
	copy(op.Key, key)
	op.Value[0] = format
	copy(op.Value[1:], data)
	return op.Finish()
}
