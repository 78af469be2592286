package chunk

import (
	"bytes"
	"encoding/binary"
	"slices"

	"belfry/pkg/object"
	"belfry/pkg/store/driver"
)

// entry is an entry of a chunk.
type entry struct {
	number int
	value  []byte
}

// uuid returns the uuid of an entry's value, "" if it is no entry.
func uuidOf(value []byte) string {
	uuid, _ := object.Text(object.Field(value, "uuid"))
	return uuid
}

// each calls f with the entries of a chunk, in the order of their numbers.
func each(chunk []byte, f func(e entry)) error {
	r := reader{rest: chunk}
	for len(r.rest) > 0 {
		e := entry{number: r.number()}
		e.value = r.bytes(r.number())
		if r.failed {
			return errMalformed()
		}
		f(e)
	}
	return nil
}

func decode(chunk []byte) (entries []entry, err error) {
	entries = make([]entry, 0, bytes.Count(chunk, []byte(`"uuid":`))+1)
	err = each(chunk, func(e entry) { entries = append(entries, e) })
	return entries, err
}

func encode(entries []entry) []byte {
	if len(entries) == 0 {
		return nil
	}
	size := 0
	for _, e := range entries {
		size += 2*binary.MaxVarintLen32 + len(e.value)
	}
	out := make([]byte, 0, size)
	for _, e := range entries {
		out = binary.AppendUvarint(out, uint64(e.number))
		out = append(binary.AppendUvarint(out, uint64(len(e.value))), e.value...)
	}
	return out
}

// Reader returns the content of a chunk of an array; nil if it is empty.
type Reader func(chunk int) ([]byte, error)

// Some returns the entries with some uuids, those that there are. Each chunk is read once.
func (a *Array) Some(uuids []string, read Reader) (*driver.Entries, error) {
	found := &driver.Entries{Count: a.Count, Bytes: a.Bytes, Values: map[string][]byte{}}
	wanted := map[int][]string{}
	for _, uuid := range uuids {
		n := a.Of(uuid)
		wanted[n] = append(wanted[n], uuid)
	}
	for n, uuids := range wanted {
		data, err := read(n)
		if err != nil {
			return nil, err
		}
		err = each(data, func(e entry) {
			if uuid := uuidOf(e.value); slices.Contains(uuids, uuid) {
				found.Values[uuid] = bytes.Clone(e.value)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Change returns the array after some entries have changed, and the chunks that have changed with them; a chunk that is
// empty now is nil. An entry that is new becomes the last one.
func (a Array) Change(changes []driver.Entry, read Reader) (after Array, chunks map[int][]byte, err error) {
	decoded := map[int][]entry{}
	for _, c := range changes {
		n := a.Of(c.UUID)
		entries, known := decoded[n]
		if !known {
			data, err := read(n)
			if err != nil {
				return a, nil, err
			}
			if entries, err = decode(data); err != nil {
				return a, nil, err
			}
		}
		at := slices.IndexFunc(entries, func(e entry) bool { return uuidOf(e.value) == c.UUID })
		switch {
		case at < 0 && c.Value == nil:
		case at < 0:
			entries = append(entries, entry{a.Next, c.Value})
			a.Next, a.Count, a.Bytes = a.Next+1, a.Count+1, a.Bytes+len(c.Value)+1
		case c.Value == nil:
			a.Count, a.Bytes = a.Count-1, a.Bytes-len(entries[at].value)-1
			entries = slices.Delete(entries, at, at+1)
		default:
			a.Bytes += len(c.Value) - len(entries[at].value)
			entries[at].value = c.Value
		}
		decoded[n] = entries
	}
	chunks = make(map[int][]byte, len(decoded))
	for n, entries := range decoded {
		chunks[n] = encode(entries)
	}
	return a, chunks, nil
}
