package filestore

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// format is the first byte of every value. Later versions of belfry can detect
// the encoding by it. That of a record with arrays in chunks is formatChunks.
const (
	format       = 1
	formatChunks = 2
)

const valueHeader = 1 + revisionSize

// stored is a record: format, revision, length of the entries, entries, body. With formatChunks, the body is the head,
// and the length of the arrays and these are before it.
// Its entries are sorted; each is its length, then the index number and the
// escaped parts: the key of the index entry without store and UUID.
type stored struct {
	revision uint64
	entries  []byte
	arrays   []byte // see chunk.Encode; empty: none is in chunks
	body     []byte
}

func decodeRecord(value []byte) (stored, error) {
	if len(value) <= valueHeader || value[0] != format && value[0] != formatChunks {
		return stored{}, errFormat("a record")
	}
	entries, rest, ok := cutField(value[valueHeader:])
	var arrays []byte
	if ok && value[0] == formatChunks {
		arrays, rest, ok = cutField(rest)
	}
	if !ok {
		return stored{}, errFormat("a record")
	}
	return stored{revision: binary.BigEndian.Uint64(value[1:]), entries: entries, arrays: arrays, body: rest}, nil
}

// setRecord adds a record to a batch, encoded in place.
func setRecord(batch *pebble.Batch, store uint32, uuid string, r stored) error {
	var length [2 * binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(len(r.entries)))
	size, kind := valueHeader+n+len(r.entries)+len(r.body), byte(format)
	m := n
	if len(r.arrays) > 0 {
		m += binary.PutUvarint(length[n:], uint64(len(r.arrays)))
		size, kind = size+m-n+len(r.arrays), formatChunks
	}
	op := batch.SetDeferred(prefixSize+len(uuid), size)
	appendUUIDKey(op.Key[:0], store, kindObject, uuid)
	v := op.Value[:0]
	v = append(v, kind)
	v = binary.BigEndian.AppendUint64(v, r.revision)
	v = append(v, length[:n]...)
	v = append(v, r.entries...)
	v = append(v, length[n:m]...)
	v = append(v, r.arrays...)
	copy(op.Value[len(v):], r.body)
	return op.Finish()
}

// encodeTombstone encodes a tombstone: format, revision, owner.
func encodeTombstone(revision uint64, owner string) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{format}, revision), owner...)
}

func decodeTombstone(value []byte) (revision uint64, owner string, err error) {
	if len(value) < valueHeader || value[0] != format {
		return 0, "", errFormat("a tombstone")
	}
	return binary.BigEndian.Uint64(value[1:]), string(value[valueHeader:]), nil
}

// setEvent adds a pending event to a batch: format, ID and subject each after
// their length, then the payload.
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

// cutField splits off a field that is preceded by its length.
func cutField(b []byte) (field, rest []byte, ok bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 || uint64(len(b)-n) < size {
		return nil, nil, false
	}
	return b[n : n+int(size)], b[n+int(size):], true
}

// encodeEntries encodes the keys of a record as its stored entries.
func encodeEntries(indexes map[string]index, keys []driver.Key) ([]byte, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	var room [8][]byte // that a few keys need no memory besides the entries
	var text [512]byte
	list, buf := room[:0], text[:0]
	size := 0
	for _, key := range keys {
		ix, ok := indexes[key.Index]
		if !ok || len(key.Parts) != ix.Parts {
			return nil, errs.New(errs.Internal, "filestore: a key with %d parts for the index %q, which has %d",
				len(key.Parts), key.Index, ix.Parts)
		}
		from := len(buf)
		buf = appendParts(appendIndex(buf, ix.ID), key.Parts)
		entry := buf[from:len(buf):len(buf)]
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

// changeEntries adds the difference between two lists of stored entries of a
// record to a batch.
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
			op := batch.DeleteDeferred(entryKeySize(a, uuid))
			putEntryKey(op.Key, store, a, uuid)
			if err := op.Finish(); err != nil {
				return err
			}
			a, old, moreA = cutField(old)
		case !moreA || order > 0:
			op := batch.SetDeferred(entryKeySize(b, uuid), 0)
			putEntryKey(op.Key, store, b, uuid)
			if err := op.Finish(); err != nil {
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

func entryKeySize(entry []byte, uuid string) int { return prefixSize + len(entry) + len(uuid) }

// putEntryKey puts a key into a buffer of entryKeySize bytes.
func putEntryKey(buf []byte, store uint32, entry []byte, uuid string) {
	rest := buf[len(appendPrefix(buf[:0], store, kindIndex)):]
	copy(rest[copy(rest, entry):], uuid)
}

func errFormat(what string) error {
	return errs.New(errs.Internal, "the data folder has %s that this version of belfry can't read: "+
		"it is corrupt, or a newer version wrote it", what)
}
