// Package chunk is how backends keep large arrays of a record: in chunks, so that a change of one entry writes one
// chunk instead of the array.
//
// An entry is an object with a uuid, which no other entry of its array has. The uuid says in which chunk the entry is.
// So the entries of some uuids are read and written with their chunks alone. An entry also has a number, which only
// grows from one entry to the next: it is the order of the array.
//
// The record itself is kept without these arrays, as its head: there they are empty. An Array describes each. The
// backend keeps it with the head. It must write the head and the chunks that change in one atomic step, or in such a
// way that a head always has the chunks that were written with it.
package chunk

import (
	"encoding/binary"
	"hash/fnv"
	"io"
	"math"
	"slices"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

const (
	// Least is from how many bytes on an array is kept in chunks.
	Least = 64 << 10

	// Kept is how many bytes an array in chunks has at least. One that is smaller becomes whole with the next write of
	// its record.
	Kept = Least / 2

	size    = 8 << 10        // bytes of a chunk, about, when chunks are made
	largest = 3 * size       // bytes of a chunk, on average: more are made then
	most    = math.MaxUint16 // chunks of an array
)

// Array is an array in chunks.
type Array struct {
	Name   string
	At     int // where the empty array begins in the head
	Chunks int
	Count  int // of entries
	Bytes  int // of entries, each with a comma
	Next   int // is greater than the number of each entry
}

// length is how many bytes the array has.
func (a *Array) length() int {
	if a.Count == 0 {
		return len("[]")
	}
	return a.Bytes + 1
}

// Of returns the number of the chunk that an entry is in.
func (a *Array) Of(uuid string) int {
	h := fnv.New64a()
	_, _ = io.WriteString(h, uuid)
	return int(h.Sum64() % uint64(a.Chunks))
}

// Outgrown reports whether an array is to be written whole, so that it gets another number of chunks, or none.
func (a *Array) Outgrown() bool {
	return a.Bytes < Kept || a.Bytes > a.Chunks*largest && a.Chunks < most
}

// chunksFor returns the number of chunks of a new array.
func chunksFor(bytes int) int { return min(max(1, bytes/size), most) }

// Encode encodes arrays, in the order of their places in the head.
func Encode(arrays []Array) []byte {
	if len(arrays) == 0 {
		return nil
	}
	out := binary.AppendUvarint(nil, uint64(len(arrays)))
	for i := range arrays {
		a := &arrays[i]
		out = append(binary.AppendUvarint(out, uint64(len(a.Name))), a.Name...)
		for _, n := range [...]int{a.At, a.Chunks, a.Count, a.Bytes, a.Next} {
			out = binary.AppendUvarint(out, uint64(n))
		}
	}
	return out
}

// Decode is the inverse of Encode. It reports errs.Internal for other data.
func Decode(data []byte) ([]Array, error) {
	if len(data) == 0 {
		return nil, nil
	}
	r := reader{rest: data}
	n := r.number()
	if n > len(data) {
		return nil, errMalformed()
	}
	arrays := make([]Array, n)
	for i := range arrays {
		a := &arrays[i]
		a.Name = string(r.bytes(r.number()))
		for _, into := range [...]*int{&a.At, &a.Chunks, &a.Count, &a.Bytes, &a.Next} {
			*into = r.number()
		}
		r.failed = r.failed || a.Chunks < 1 || a.Chunks > most
	}
	if r.failed || len(r.rest) > 0 {
		return nil, errMalformed()
	}
	return arrays, nil
}

// Find returns the array of a name; nil: none of these.
func Find(arrays []Array, name string) *Array {
	for i := range arrays {
		if arrays[i].Name == name {
			return &arrays[i]
		}
	}
	return nil
}

// Place sets where the arrays begin in a head whose other fields have changed.
func Place(arrays []Array, head []byte) error {
	for i := range arrays {
		from, to, ok := object.Span(head, arrays[i].Name)
		if !ok || string(head[from:to]) != "[]" {
			return errs.New(errs.Internal,
				"the array %s is in chunks, and the object without them has another value of it", arrays[i].Name)
		}
		arrays[i].At = from
	}
	slices.SortFunc(arrays, func(a, b Array) int { return a.At - b.At })
	return nil
}

// ErrWhole is the error of a change of entries of an array that is not in chunks.
func ErrWhole(uuid, array string) error {
	return errs.New(errs.Internal,
		"the array %s of %s is not in chunks, so its entries can't be changed alone", array, uuid)
}

func errMalformed() error {
	return errs.New(errs.Internal, "the chunks of an array are malformed: they are damaged, or a newer version of "+
		"belfry wrote them")
}

// reader reads numbers and texts.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) number() int {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > math.MaxInt32 {
		r.failed = true
		return 0
	}
	r.rest = r.rest[size:]
	return int(n)
}

func (r *reader) bytes(n int) []byte {
	if r.failed || n > len(r.rest) {
		r.failed = true
		return nil
	}
	out := r.rest[:n:n]
	r.rest = r.rest[n:]
	return out
}
