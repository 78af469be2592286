package mapping

import (
	"bytes"

	"belfry/pkg/object"
	"belfry/pkg/store"
)

// array is a mapped array: entries in the order in which they were added, at
// most one for a uuid.
type array struct {
	entries [][]byte // nil where an entry was removed
	at      map[string]int
	live    int
	bytes   int // of the entries, each with a comma
}

// arrayOf returns the value of an array in an encoded object, its strings in the form in which entries are computed:
// what was stored before strings had one form is the same array, and is not written for that.
func arrayOf(body []byte, name string) []byte { return object.Canonical(object.Field(body, name)) }

// parseArray reads a stored array. It drops elements that are not entries, and
// second entries for a uuid, so that writing the array repairs it.
func parseArray(value []byte) *array {
	likely := bytes.Count(value, []byte(`"uuid":`))
	a := &array{at: make(map[string]int, likely), entries: make([][]byte, 0, likely)}
	object.Elements(value, func(entry []byte) bool {
		if uuid, ok := object.Text(object.Field(entry, "uuid")); ok && a.index(uuid) < 0 {
			a.set(uuid, entry)
		}
		return true
	})
	return a
}

func (a *array) index(uuid string) int {
	if i, ok := a.at[uuid]; ok {
		return i
	}
	return -1
}

// set replaces the entry with the same uuid, or appends one.
func (a *array) set(uuid string, entry []byte) {
	if i := a.index(uuid); i >= 0 {
		a.bytes += len(entry) - len(a.entries[i])
		a.entries[i] = entry
		return
	}
	a.bytes += len(entry) + 1
	a.at[uuid] = len(a.entries)
	a.entries = append(a.entries, entry)
	a.live++
}

func (a *array) remove(uuid string) {
	if i := a.index(uuid); i >= 0 {
		a.bytes -= len(a.entries[i]) + 1
		a.entries[i] = nil
		delete(a.at, uuid)
		a.live--
	}
}

// put sets the entry of a uuid, nil for none, and reports whether it changed.
func (a *array) put(uuid string, entry []byte) bool {
	i := a.index(uuid)
	switch {
	case i < 0 && entry == nil, i >= 0 && entry != nil && bytes.Equal(a.entries[i], entry):
		return false
	case entry == nil:
		a.remove(uuid)
	default:
		a.set(uuid, entry)
	}
	return true
}

// full reports whether the array of a mapping takes no further entry.
func (a *array) full(m *store.Mapping) bool { return m.Full(a.live, a.bytes) }

// trim removes entries from the end while there are more than the mapping allows,
// and reports whether it removed any.
func (a *array) trim(m *store.Mapping) bool {
	trimmed := m.Exceeds(a.live, a.bytes)
	for i := len(a.entries) - 1; m.Exceeds(a.live, a.bytes); i-- {
		if e := a.entries[i]; e != nil {
			uuid, _ := object.Text(object.Field(e, "uuid"))
			a.remove(uuid)
		}
	}
	return trimmed
}

func (a *array) uuids() []string {
	uuids := make([]string, 0, a.live)
	for _, e := range a.entries {
		if e != nil {
			uuid, _ := object.Text(object.Field(e, "uuid"))
			uuids = append(uuids, uuid)
		}
	}
	return uuids
}

func (a *array) encode() []byte {
	size := 2
	for _, e := range a.entries {
		size += len(e) + 1
	}
	out := append(make([]byte, 0, size), '[')
	for _, e := range a.entries {
		if e == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return append(out, ']')
}

// equal reports whether a stored value is this array; absent is empty. It encodes nothing.
func (a *array) equal(value []byte) bool {
	if value == nil {
		return a.live == 0
	}
	rest, separator := value, "["
	for _, e := range a.entries {
		if e == nil {
			continue
		}
		var found bool
		if rest, found = bytes.CutPrefix(rest, []byte(separator)); !found {
			return false
		}
		if rest, found = bytes.CutPrefix(rest, e); !found {
			return false
		}
		separator = ","
	}
	if a.live == 0 {
		return string(value) == "[]"
	}
	return string(rest) == "]"
}
