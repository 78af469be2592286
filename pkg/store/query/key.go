package query

import (
	"encoding/binary"
	"math"
	"strconv"

	"belfry/pkg/store/driver"
	"belfry/pkg/store/object"
)

// Index is a declared index: a name that is unique in its store, and one to
// four top-level fields. It holds every object; a field that an object lacks
// sorts first.
type Index struct {
	Name   string
	Fields []string
}

// The first byte of a part says the value's type and so orders the types.
const (
	partAbsent    = 0x10
	partNull      = 0x20
	partFalse     = 0x30
	partTrue      = 0x31
	partNumber    = 0x40
	partString    = 0x50
	partComposite = 0x60
)

// EncodePart encodes a value, given as compact JSON text or nil when absent,
// as a part of a key. The order of parts is the order of values: absent, null,
// false, true, numbers, strings by code points, then arrays and objects, which
// are all alike. Numbers are rounded to float64; a string is cut off so that
// the part has at most driver.MaxPart bytes.
func EncodePart(value []byte) []byte {
	if len(value) == 0 {
		return []byte{partAbsent}
	}
	switch value[0] {
	case 'n':
		return []byte{partNull}
	case 'f':
		return []byte{partFalse}
	case 't':
		return []byte{partTrue}
	case '"':
		return encodeString(value)
	case '{', '[':
		return []byte{partComposite}
	default:
		return encodeNumber(value)
	}
}

func encodeString(value []byte) []byte {
	text, _ := object.Text(value)
	text = text[:min(len(text), driver.MaxPart-1)]
	return append(append(make([]byte, 0, 1+len(text)), partString), text...)
}

// encodeNumber writes the bits of a float64 so that bytes compare like
// numbers: the sign bit inverted, and all others too when it is negative.
// What is beyond a float64 becomes an infinity.
func encodeNumber(value []byte) []byte {
	f, _ := strconv.ParseFloat(string(value), 64)
	if f == 0 {
		f = 0 // -0 is no other number
	}
	bits := math.Float64bits(f)
	if f < 0 {
		bits = ^bits
	} else {
		bits |= 1 << 63
	}
	return binary.BigEndian.AppendUint64(append(make([]byte, 0, 9), partNumber), bits)
}

// Keys are the keys of an encoded object in the declared indexes: one in each.
// A nil body, that of a tombstone, has none.
func Keys(indexes []Index, body []byte) []driver.Key {
	if len(indexes) == 0 || body == nil {
		return nil
	}
	keys := make([]driver.Key, len(indexes))
	for i, index := range indexes {
		keys[i] = driver.Key{Index: index.Name, Parts: make([][]byte, len(index.Fields))}
	}
	set := func(name string, value []byte) bool {
		var part []byte
		for i, index := range indexes {
			for j, field := range index.Fields {
				if field != name {
					continue
				}
				if part == nil {
					part = EncodePart(value)
				}
				keys[i].Parts[j] = part
			}
		}
		return true
	}
	// A body that doesn't parse is found as if it had no more fields.
	_ = object.Each(body, set)
	absent := EncodePart(nil)
	for _, key := range keys {
		for j, part := range key.Parts {
			if part == nil {
				key.Parts[j] = absent
			}
		}
	}
	return keys
}
