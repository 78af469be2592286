package query

import (
	"bytes"
	"encoding/binary"
	"slices"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/driver"
)

// Place is a place in the order of a list, between objects: after one with these values and this uuid, whether or not
// there is one. It does not depend on the reads.
type Place struct {
	parts [][]byte // of the fields of the order
	uuid  string
}

// PlaceOf returns the place of an object.
func (p *Plan) PlaceOf(o object.Object) Place {
	var at Place
	for _, f := range p.order {
		at.parts = append(at.parts, EncodePart(f.of(o)))
	}
	at.uuid, _ = o.Text("uuid")
	return at
}

// Encode writes a place for DecodePlace.
func (at Place) Encode() []byte {
	var text []byte
	for _, part := range append(at.parts[:len(at.parts):len(at.parts)], []byte(at.uuid)) {
		text = append(binary.AppendUvarint(text, uint64(len(part))), part...)
	}
	return text
}

// DecodePlace reads a place of the list.
func (p *Plan) DecodePlace(text []byte) (at Place, err error) {
	for range len(p.order) + 1 {
		size, n := binary.Uvarint(text)
		if n <= 0 || size > uint64(len(text)-n) || size > driver.MaxPart {
			return at, errs.New(errs.Invalid, "cursor: invalid; start again without it")
		}
		at.parts, text = append(at.parts, text[n:n+int(size)]), text[n+int(size):]
	}
	if last := len(at.parts) - 1; len(text) == 0 {
		at.uuid, at.parts = string(at.parts[last]), at.parts[:last]
		return at, nil
	}
	return at, errs.New(errs.Invalid, "cursor: invalid; start again without it")
}

// IsAfter reports whether an object comes after a place.
func (p *Plan) IsAfter(at Place, o object.Object) bool {
	other := p.PlaceOf(o)
	for i, f := range p.order {
		if c := f.compare(other.parts[i], at.parts[i]); c != 0 {
			return c > 0
		}
	}
	if p.descending {
		return other.uuid < at.uuid
	}
	return other.uuid > at.uuid
}

// compare compares parts in the direction of the field.
func (f field) compare(a, b []byte) int {
	if f.descending {
		a, b = invert(a), invert(b)
	}
	return bytes.Compare(a, b)
}

// Start is where a read continues.
type Start struct {
	Whole bool // with the first of its objects
	Ended bool // nowhere: all of them are before the place

	// After this key of the index and this uuid, in the direction of the read.
	Key  [][]byte
	UUID string
}

// The least and the greatest part of keys and uuid, which no object has.
var (
	leastPart, greatestPart = []byte{}, []byte{0xff}
	leastUUID, greatestUUID = "", "~"
)

// Start returns where a read of an index continues after a place of the list.
func (p *Plan) Start(r Read, place Place) Start {
	equal, rest := r.fields[:len(r.equal)], r.fields[len(r.equal):]
	at := Start{Key: slices.Clone(r.equal), UUID: place.uuid}
	for i, f := range p.order {
		held := equal.index(f.name)
		if held < 0 { // the next one of the rest, which has the order of the list
			at.Key, rest = append(at.Key, rest[0].directed(place.parts[i])), rest[1:]
			continue
		}
		// All that is read from here on has the same value, which can be another one than at the place.
		c := f.compare(equal[held].raw(r.equal[held]), place.parts[i])
		switch {
		case c == 0:
			continue
		case len(at.Key) == len(r.equal):
			return Start{Whole: c > 0, Ended: c < 0}
		}
		// All keys with this prefix are after the place, or before it.
		part, uuid := greatestPart, greatestUUID
		if (c > 0) != r.descending {
			part, uuid = leastPart, leastUUID
		}
		for range rest {
			at.Key = append(at.Key, part)
		}
		at.UUID = uuid
		return at
	}
	return at
}

// directed returns a part as the keys of an index of the field have it.
func (f field) directed(part []byte) []byte {
	if f.descending {
		return invert(part)
	}
	return part
}

// raw is the inverse of directed.
func (f field) raw(part []byte) []byte {
	if f.descending {
		part = invert(part[:len(part)-1])
		return part[:len(part)-1]
	}
	return part
}
