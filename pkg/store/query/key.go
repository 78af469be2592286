package query

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"

	"belfry/pkg/object"
	"belfry/pkg/store/driver"
)

// Index is a declared index: a name that is unique in its store, and one to four fields:
//
//	year          a field; an object that lacks it sorts first
//	address.city  a field of an object in a field
//	-year         a field whose greatest value comes first
//	tags[]        each element of an array; at most one field of an index
//
// It holds every object, but one with elements holds those that have elements.
type Index struct {
	Name   string
	Fields []string

	parsed order // Fields, of a prepared index
}

// Prepare returns the indexes with the format of keys in their names, and so that using them costs less.
func Prepare(indexes []Index) []Index {
	all := slices.Clone(indexes)
	for i := range all {
		all[i].Name += keyFormat
		all[i].parsed = all[i].fields()
	}
	return all
}

func (i Index) fields() order {
	if i.parsed != nil {
		return i.parsed
	}
	fields := make(order, len(i.Fields))
	for j, text := range i.Fields {
		fields[j] = parseField(text)
	}
	return fields
}

// NewIndex returns an index of fields with a name of its own.
func NewIndex(fields []string) Index {
	return Index{Name: strings.ReplaceAll(strings.Join(fields, ","), "[]", ".."), Fields: fields}
}

// keyFormat is the format of keys. An index of another format is another index for backends, which fill it.
const keyFormat = ".2"

// TopFields returns the top-level fields of the index.
func (i Index) TopFields() []string {
	names := make([]string, len(i.Fields))
	for j, f := range i.fields() {
		names[j] = f.top
	}
	return names
}

// HasElements reports whether an object may have any number of keys in the index.
func (i Index) HasElements() bool {
	return slices.ContainsFunc(i.fields(), func(f field) bool { return f.elements })
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

// maxString is how many bytes of a string are in a part: inverted with its type, it has driver.MaxPart bytes.
const maxString = driver.MaxPart - 2

// A number that is rounded has one more byte than numberPart: partInexact.
const (
	numberPart  = 9
	partInexact = 0x01
)

// EncodePart encodes a value, given as compact JSON text or nil when absent,
// as a part of a key. The order of parts is the order of values: absent, null,
// false, true, numbers, strings by code points, then arrays and objects, which
// are all alike. Numbers are rounded down to float64; of a string the first maxString bytes
// count.
func EncodePart(value []byte) []byte { return appendPart(nil, value) }

// appendPart is EncodePart, appended to other bytes.
func appendPart(dst, value []byte) []byte {
	if len(value) == 0 {
		return append(dst, partAbsent)
	}
	switch value[0] {
	case 'n':
		return append(dst, partNull)
	case 'f':
		return append(dst, partFalse)
	case 't':
		return append(dst, partTrue)
	case '"':
		return appendString(dst, value)
	case '{', '[':
		return append(dst, partComposite)
	default:
		return appendNumber(dst, value)
	}
}

func appendString(dst, value []byte) []byte {
	from := len(dst) + 1
	part, _ := object.AppendText(append(dst, partString), value)
	return part[:min(len(part), from+maxString)]
}

// appendNumber writes the bits of the greatest float64 that is not above the number, so
// that bytes compare like numbers: the sign bit inverted, and all others too when it is
// negative. A number that is not a float64 ends with partInexact, so that it differs from
// all that are.
func appendNumber(dst, value []byte) []byte {
	f, exact := floor(value)
	part := appendFloat(dst, f)
	if !exact {
		part = append(part, partInexact)
	}
	return part
}

func appendFloat(dst []byte, f float64) []byte {
	if f == 0 {
		f = 0 // -0 is no other number
	}
	bits := math.Float64bits(f)
	if f < 0 {
		bits = ^bits
	} else {
		bits |= 1 << 63
	}
	return binary.BigEndian.AppendUint64(append(dst, partNumber), bits)
}

// floor returns the greatest float64 that is not above a number, and whether it is the
// number. It is an infinity only for a number below all others.
func floor(value []byte) (f float64, exact bool) {
	if n, ok := smallInt(value); ok && -maxExactInt <= n && n <= maxExactInt {
		return float64(n), true
	}
	f, err := strconv.ParseFloat(string(value), 64)
	switch {
	case err != nil && f > 0:
		return math.MaxFloat64, false
	case err != nil:
		return math.Inf(-1), false
	}
	// 766 digits after the first are enough for any float64.
	c := compareNumbers(value, strconv.AppendFloat(nil, f, 'e', 766, 64))
	if c < 0 {
		f = math.Nextafter(f, math.Inf(-1))
	}
	return f, c == 0
}

// maxExactInt is up to where every integer is a float64.
const maxExactInt = 1 << 53

// Keys are the keys of an encoded object in the declared indexes: one in each, or, in an
// index with the elements of an array, one for each element. A nil body, that of a
// tombstone, has no keys.
func Keys(indexes []Index, body []byte) []driver.Key {
	if len(indexes) == 0 || body == nil {
		return nil
	}
	var room [16]string // that a few indexes need no memory for the names of their fields
	names := room[:0]
	for i := range indexes {
		for _, f := range indexes[i].fields() {
			names = append(names, f.top)
		}
	}
	// A body that doesn't parse is found as if it had no more fields.
	values, parts := object.Values(body, names), make([][]byte, len(names))
	text := make([]byte, 0, partSize*len(names)) // of the parts
	keys := make([]driver.Key, 0, len(indexes))
	for i := range indexes {
		n := len(indexes[i].Fields)
		keys, text = indexes[i].appendKeys(keys, values[:n], parts[:n:n], text)
		values, parts = values[n:], parts[n:]
	}
	return keys
}

// partSize is the usual length of a part, or more.
const partSize = 24

// appendKeys appends the keys of an object whose top-level fields have these values. The parts of the keys are put into
// parts, and their bytes are appended to text.
func (i Index) appendKeys(keys []driver.Key, values, parts [][]byte, text []byte) ([]driver.Key, []byte) {
	elements := -1
	fields := i.fields()
	for j, f := range fields {
		if f.elements {
			elements = j
			continue
		}
		from := len(text)
		text = f.appendPart(text, f.within(values[j]))
		parts[j] = text[from:len(text):len(text)]
	}
	if elements < 0 {
		return append(keys, driver.Key{Index: i.Name, Parts: parts}), text
	}
	for _, part := range fields[elements].parts(fields[elements].within(values[elements])) {
		key := driver.Key{Index: i.Name, Parts: slices.Clone(parts)}
		key.Parts[elements] = part
		keys = append(keys, key)
	}
	return keys, text
}

// AppendExact appends a text that two scalar JSON values have in common if and only if they are equal: strings by
// their characters, numbers by their exact values, however they are written. It reports false for other values: null,
// arrays and objects.
func AppendExact(dst, value []byte) ([]byte, bool) {
	if len(value) == 0 {
		return dst, false
	}
	switch value[0] {
	case 'n', '{', '[':
		return dst, false
	case 't', 'f':
		return append(dst, value[0]), true
	case '"':
		text, ok := object.Text(value)
		return append(append(dst, '"'), text...), ok
	}
	return object.ParseDecimal(value).Append(dst), true
}
