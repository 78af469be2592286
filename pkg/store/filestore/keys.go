package filestore

import (
	"bytes"
	"encoding/binary"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// The kinds of keys. See the package comment.
const (
	kindChunk     = 'a'
	kindCount     = 'c'
	kindEvent     = 'e'
	kindIndex     = 'i'
	kindObject    = 'o'
	kindRevision  = 'r'
	kindTombstone = 't'
)

const (
	prefixSize   = 5 // store number and kind
	revisionSize = 8
)

// buffers pools buffers, so that Get does not allocate keys, and chunks for as long as it joins them.
type buffers struct{ pool sync.Pool }

func (b *buffers) get() *[]byte {
	if buf, ok := b.pool.Get().(*[]byte); ok {
		return buf
	}
	buf := make([]byte, 0, 256)
	return &buf
}

func (b *buffers) put(buf *[]byte) {
	*buf = (*buf)[:0]
	b.pool.Put(buf)
}

func appendPrefix(dst []byte, store uint32, kind byte) []byte {
	return append(binary.BigEndian.AppendUint32(dst, store), kind)
}

func appendUUIDKey(dst []byte, store uint32, kind byte, uuid string) []byte {
	return append(appendPrefix(dst, store, kind), uuid...)
}

// appendRevisionKey appends the key of an event, or of a tombstone in the order
// of revisions.
func appendRevisionKey(dst []byte, store uint32, kind byte, revision uint64, uuid string) []byte {
	dst = binary.BigEndian.AppendUint64(appendPrefix(dst, store, kind), revision)
	return append(dst, uuid...)
}

// splitRevisionKey is the inverse of appendRevisionKey.
func splitRevisionKey(key []byte) (revision uint64, uuid string) {
	return binary.BigEndian.Uint64(key[prefixSize:]), string(key[prefixSize+revisionSize:])
}

// uuidOfEntry returns the UUID at the end of an index entry, after the parts.
func uuidOfEntry(key []byte, parts int) (string, bool) {
	rest := key[prefixSize+4:]
	for i := 0; i+1 < len(rest); i++ {
		if rest[i] != 0x00 {
			continue
		}
		if rest[i+1] == 0x01 {
			if parts--; parts == 0 {
				return string(rest[i+2:]), true
			}
		}
		i++
	}
	return "", false
}

// keyAfter returns the smallest key greater than key.
func keyAfter(key []byte) []byte {
	return append(append(make([]byte, 0, len(key)+1), key...), 0x00)
}

// afterPrefix returns the smallest key greater than all that begin with prefix.
// A prefix includes the letter of its kind, so such a key always exists.
func afterPrefix(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] != 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}

// prefixBounds returns the iterator bounds of the keys that begin with prefix.
func prefixBounds(prefix []byte) *pebble.IterOptions {
	return &pebble.IterOptions{LowerBound: prefix, UpperBound: afterPrefix(prefix)}
}
