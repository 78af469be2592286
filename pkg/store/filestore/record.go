package filestore

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// format begins every value, so that a later belfry can tell what it reads.
const format = 1

const valueHeader = 1 + revisionSize

// A stored record is: format, revision, length of the entries, entries, body.
// Its entries are sorted; each is its length, then the index number and the
// escaped parts: an index entry's key without store and uuid.
type stored struct {
	revision uint64
	entries  []byte
	body     []byte
}

func decodeRecord(value []byte) (stored, error) {
	if len(value) <= valueHeader || value[0] != format {
		return stored{}, errFormat("a record")
	}
	size, n := binary.Uvarint(value[valueHeader:])
	rest := value[valueHeader:]
	if n <= 0 || uint64(len(rest)-n) < size {
		return stored{}, errFormat("a record")
	}
	rest = rest[n:]
	return stored{
		revision: binary.BigEndian.Uint64(value[1:]),
		entries:  rest[:size:size],
		body:     rest[size:],
	}, nil
}

// setRecord adds a record to a batch, encoded in place.
func setRecord(batch *pebble.Batch, store uint32, uuid string, r stored) error {
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(len(r.entries)))
	op := batch.SetDeferred(prefixSize+len(uuid), valueHeader+n+len(r.entries)+len(r.body))
	appendUUIDKey(op.Key[:0], store, kindObject, uuid)
	v := op.Value[:0]
	v = append(v, format)
	v = binary.BigEndian.AppendUint64(v, r.revision)
	v = append(v, length[:n]...)
	v = append(v, r.entries...)
	copy(op.Value[len(v):], r.body)
	return op.Finish()
}

func encodeTombstone(revision uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{format}, revision)
}

func decodeTombstone(value []byte) (uint64, error) {
	if len(value) != valueHeader || value[0] != format {
		return 0, errFormat("a tombstone")
	}
	return binary.BigEndian.Uint64(value[1:]), nil
}

// setEvent adds a waiting event to a batch: format, and the fields with their
// lengths before them, but for the payload, which is the rest.
func setEvent(batch *pebble.Batch, store uint32, uuid string, revision uint64, e *driver.Event) error {
	var head [1 + 2*binary.MaxVarintLen64]byte
	id := binary.PutUvarint(head[:], uint64(len(e.ID)))
	subject := binary.PutUvarint(head[id:], uint64(len(e.Subject)))
	size := 1 + id + len(e.ID) + subject + len(e.Subject) + len(e.Payload)
	op := batch.SetDeferred(prefixSize+revisionSize+len(uuid), size)
	appendRevisionKey(op.Key[:0], store, kindEvent, revision, uuid)
	v := op.Value[:0]
	v = append(v, format)
	v = append(v, head[:id]...)
	v = append(v, e.ID...)
	v = append(v, head[id:id+subject]...)
	v = append(v, e.Subject...)
	copy(op.Value[len(v):], e.Payload)
	return op.Finish()
}

func decodeEvent(value []byte) (driver.Event, error) {
	if len(value) == 0 || value[0] != format {
		return driver.Event{}, errFormat("an event")
	}
	id, rest, ok := cutField(value[1:])
	subject, payload, ok2 := cutField(rest)
	if !ok || !ok2 {
		return driver.Event{}, errFormat("an event")
	}
	return driver.Event{ID: string(id), Subject: string(subject), Payload: bytes.Clone(payload)}, nil
}

// cutField returns what stands behind a length, and the rest.
func cutField(b []byte) (field, rest []byte, ok bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 || uint64(len(b)-n) < size {
		return nil, nil, false
	}
	return b[n : n+int(size)], b[n+int(size):], true
}

// encodeEntries turns the keys of a record into its stored entries.
func encodeEntries(indexes map[string]index, keys []driver.Key) ([]byte, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	list := make([][]byte, 0, len(keys))
	size := 0
	for _, key := range keys {
		ix, ok := indexes[key.Index]
		if !ok || len(key.Parts) != ix.Parts {
			return nil, errs.New(errs.Internal, "filestore: a key with %d parts for the index %q, which has %d",
				len(key.Parts), key.Index, ix.Parts)
		}
		entry := appendParts(appendIndex(make([]byte, 0, 64), ix.ID), key.Parts)
		list = append(list, entry)
		size += len(entry) + 2
	}
	slices.SortFunc(list, bytes.Compare)
	list = slices.CompactFunc(list, bytes.Equal)
	entries := make([]byte, 0, size)
	for _, entry := range list {
		entries = append(binary.AppendUvarint(entries, uint64(len(entry))), entry...)
	}
	return entries, nil
}

func appendIndex(dst []byte, id uint32) []byte { return binary.BigEndian.AppendUint32(dst, id) }

func appendParts(dst []byte, parts [][]byte) []byte {
	for _, part := range parts {
		dst = driver.AppendPartEnd(driver.AppendPart(dst, part))
	}
	return dst
}

// changeEntries adds to a batch what turns one list of stored entries of a
// record into another.
func changeEntries(batch *pebble.Batch, store uint32, uuid string, old, new []byte) error {
	if bytes.Equal(old, new) {
		return nil
	}
	a, old, moreA := cutField(old)
	b, new, moreB := cutField(new)
	for moreA || moreB {
		order := bytes.Compare(a, b)
		switch {
		case !moreB || moreA && order < 0:
			if err := batch.Delete(entryKey(store, a, uuid), nil); err != nil {
				return err
			}
			a, old, moreA = cutField(old)
		case !moreA || order > 0:
			if err := batch.Set(entryKey(store, b, uuid), nil, nil); err != nil {
				return err
			}
			b, new, moreB = cutField(new)
		default:
			a, old, moreA = cutField(old)
			b, new, moreB = cutField(new)
		}
	}
	return nil
}

func entryKey(store uint32, entry []byte, uuid string) []byte {
	key := make([]byte, 0, prefixSize+len(entry)+len(uuid))
	return append(append(appendPrefix(key, store, kindIndex), entry...), uuid...)
}

func errFormat(what string) error {
	return errs.New(errs.Internal, "the store's folder holds %s that this belfry can't read: "+
		"it is damaged, or a newer belfry wrote it", what)
}
