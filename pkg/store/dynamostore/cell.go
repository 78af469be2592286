package dynamostore

import (
	"encoding/binary"
	"errors"
	"sync"

	"github.com/klauspost/compress/zstd"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

var errMalformed = errors.New("malformed")

func errFormat(table, what string, cause error) error {
	return errs.Wrap(cause, errs.Internal, "the table %s has %s that this version of belfry can't read: "+
		"it is corrupt, or a newer version wrote it", table, what)
}

// The first byte of a cell.
const (
	cellInline   = 'i'
	cellOverflow = 'o'
	cellArrays   = 'a' // of a value with arrays in chunks, which versions that don't know chunks report
)

// cell is a value or an event in the item of a record: inline, compressed, or a
// reference to its overflow when it would use too much of the item's 400 KB.
type cell struct {
	tag  tag    // of the write that created it
	data []byte // compressed; nil in the overflow

	// The overflow is in pieces with the tag; blob numbers the cells of a write.
	blob, pieces int

	arrays []array // in chunks; only of a value
}

func (c *cell) isOverflow() bool { return c.pieces > 0 }

// encode encodes a cell: its kind, its tag, and its data or the reference to it. If the value has arrays, the kind that
// the cell has without them and the arrays are between. A byte below 0x80 follows each tag, because dynalite compares
// the beginning of bytes as text.
func (c *cell) encode() []byte {
	out := c.head()
	if len(c.arrays) > 0 {
		out = appendField(append(out, c.kind()), string(encodeArrays(c.arrays)))
	}
	if c.isOverflow() {
		return binary.AppendUvarint(binary.AppendUvarint(out, uint64(c.blob)), uint64(c.pieces))
	}
	return append(out, c.data...)
}

// kind is the kind of a cell without arrays.
func (c *cell) kind() byte {
	if c.isOverflow() {
		return cellOverflow
	}
	return cellInline
}

// head returns the prefix of the encoded cell: its kind and tag.
func (c *cell) head() []byte {
	kind := c.kind()
	if len(c.arrays) > 0 {
		kind = cellArrays
	}
	return append([]byte{kind}, c.tag[:]...)
}

func decodeCell(b []byte) (cell, error) {
	var c cell
	if len(b) < 1+len(c.tag) {
		return c, errMalformed
	}
	kind, rest := b[0], b[1+copy(c.tag[:], b[1:]):]
	if kind == cellArrays {
		if len(rest) == 0 {
			return c, errMalformed
		}
		kind = rest[0]
		encoded, after, ok := cutField(rest[1:])
		if !ok {
			return c, errMalformed
		}
		var err error
		if c.arrays, err = decodeArrays(encoded); err != nil {
			return c, err
		}
		rest = after
	}
	switch kind {
	case cellInline:
		c.data = rest
		return c, nil
	case cellOverflow:
		blob, n := binary.Uvarint(rest)
		pieces, m := binary.Uvarint(rest[max(n, 0):])
		if n <= 0 || m <= 0 || pieces == 0 || pieces > maxPieces || blob > maxEvents {
			return c, errMalformed
		}
		c.blob, c.pieces = int(blob), int(pieces)
		return c, nil
	default:
		return c, errMalformed
	}
}

// The first byte of compressed data.
const (
	packedPlain = 0
	packedZstd  = 1
)

// maxUnpacked bounds the memory that decompressing a corrupt item can use.
const maxUnpacked = 2 * maxValue

var coder = sync.OnceValue(func() (c struct {
	*zstd.Encoder
	*zstd.Decoder
}) {
	// Neither fails with valid options.
	c.Encoder, _ = zstd.NewWriter(nil, zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true),
		zstd.WithAllLitEntropyCompression(true)) // keys and hashes have no repetitions but a small alphabet
	c.Decoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxUnpacked))
	return c
})

// pack compresses data if that makes it smaller.
func pack(b []byte) []byte {
	if len(b) >= 64 {
		if packed := coder().EncodeAll(b, append(make([]byte, 0, len(b)/2), packedZstd)); len(packed) <= len(b) {
			return packed
		}
	}
	return append([]byte{packedPlain}, b...)
}

func unpack(b []byte) ([]byte, error) {
	switch {
	case len(b) == 0:
		return nil, errMalformed
	case b[0] == packedPlain:
		return b[1:], nil
	case b[0] == packedZstd:
		return coder().DecodeAll(b[1:], nil)
	default:
		return nil, errMalformed
	}
}

// entry is a key of a record in an index, with the tag of the write that created
// its item.
type entry struct {
	key string // see indexKey
	tag tag
}

// index returns the number of the index of the entry.
func (e entry) index() uint32 { return binary.BigEndian.Uint32([]byte(e.key)) }

// encodeValue encodes a value: the number of tags, the tags, the number of entries,
// for each entry the number of its tag, the length of its key and its key, then
// the body.
func encodeValue(entries []entry, body []byte) []byte {
	var tags []tag
	number := make(map[tag]uint64)
	size := len(body) + 16
	for _, e := range entries {
		if _, known := number[e.tag]; !known {
			number[e.tag] = uint64(len(tags))
			tags = append(tags, e.tag)
			size += len(e.tag)
		}
		size += len(e.key) + 4
	}
	b := appendTags(make([]byte, 0, size), tags)
	b = binary.AppendUvarint(b, uint64(len(entries)))
	for _, e := range entries {
		b = binary.AppendUvarint(b, number[e.tag])
		b = appendField(b, e.key)
	}
	return append(b, body...)
}

func decodeValue(b []byte) (entries []entry, body []byte, err error) {
	tags, b, ok := cutTags(b)
	if !ok {
		return nil, nil, errMalformed
	}
	var count uint64
	if count, b, ok = cutNumber(b); !ok || count > uint64(len(b)) {
		return nil, nil, errMalformed
	}
	entries = make([]entry, count)
	for i := range entries {
		var n uint64
		var key []byte
		if n, b, ok = cutNumber(b); !ok || n >= uint64(len(tags)) {
			return nil, nil, errMalformed
		}
		if key, b, ok = cutField(b); !ok || len(key) < 4 {
			return nil, nil, errMalformed
		}
		entries[i] = entry{key: string(key), tag: tags[n]}
	}
	return entries, b, nil
}

// appendTags appends tags after their number.
func appendTags(b []byte, tags []tag) []byte {
	b = binary.AppendUvarint(b, uint64(len(tags)))
	for _, t := range tags {
		b = append(b, t[:]...)
	}
	return b
}

func cutTags(b []byte) (tags []tag, rest []byte, ok bool) {
	count, b, ok := cutNumber(b)
	if !ok || count > uint64(len(b)/len(tag{})) {
		return nil, nil, false
	}
	tags = make([]tag, count)
	for i := range tags {
		b = b[copy(tags[i][:], b):]
	}
	return tags, b, true
}

// encodeEvent encodes an event: ID and subject each after their length, then the
// payload.
func encodeEvent(e *driver.Event) []byte {
	b := make([]byte, 0, len(e.ID)+len(e.Subject)+len(e.Payload)+8)
	b = appendField(appendField(b, e.ID), e.Subject)
	return append(b, e.Payload...)
}

func decodeEvent(b []byte) (driver.Event, error) {
	id, b, ok := cutField(b)
	subject, payload, ok2 := cutField(b)
	if !ok || !ok2 {
		return driver.Event{}, errMalformed
	}
	return driver.Event{ID: string(id), Subject: string(subject), Payload: payload}, nil
}

func appendField(b []byte, field string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(field))), field...)
}

func cutField(b []byte) (field, rest []byte, ok bool) {
	size, b, ok := cutNumber(b)
	if !ok || size > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:size], b[size:], true
}

func cutNumber(b []byte) (uint64, []byte, bool) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, false
	}
	return v, b[n:], true
}
