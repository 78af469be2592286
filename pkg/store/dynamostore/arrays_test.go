package dynamostore_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/store/driver"
	"belfry/pkg/store/dynamostore"
)

// shelf is an object with an array of entries.
type shelf struct {
	color   string
	text    string // if it is large, the head is in the overflow
	entries []driver.Entry
}

const arrayName = "entries"

// shelfOf is a shelf of so many entries, each of a size.
func shelfOf(color string, entries, size int) shelf {
	o := shelf{color: color}
	for i := range entries {
		o.entries = append(o.entries, entryOf(fmt.Sprintf("e%04d", i), size, 0))
	}
	return o
}

// entryOf is an entry; version distinguishes it from others with its uuid.
func entryOf(uuid string, size, version int) driver.Entry {
	text := incompressible(byte(version), 40) + strings.Repeat(uuid, size/len(uuid))
	return driver.Entry{UUID: uuid, Value: fmt.Appendf(nil, `{"uuid":%q,"version":%d,"text":%q}`, uuid, version, text)}
}

// with is the shelf after changes.
func (o shelf) with(changes ...driver.Entry) shelf {
	o.entries = slices.Clone(o.entries)
	for _, c := range changes {
		at := slices.IndexFunc(o.entries, func(e driver.Entry) bool { return e.UUID == c.UUID })
		switch {
		case c.Value == nil:
			o.entries = slices.Delete(o.entries, at, at+1)
		case at < 0:
			o.entries = append(o.entries, c)
		default:
			o.entries[at] = c
		}
	}
	return o
}

func (o shelf) body() []byte {
	values := make([][]byte, len(o.entries))
	for i, e := range o.entries {
		values[i] = e.Value
	}
	return slices.Concat(o.encode(), []byte(`,"`+arrayName+`":[`), bytes.Join(values, []byte(",")), []byte("]}"))
}

// head is the body with an empty array.
func (o shelf) head() []byte {
	o.entries = nil
	return o.body()
}

func (o shelf) encode() []byte {
	b := body(o.color)
	return fmt.Appendf(nil, `%s,"text":%q`, b[:len(b)-1], o.text)
}

// changing is a write that changes entries; o is the shelf after it.
func (o shelf) changing(uuid string, cond, revision uint64, changes ...driver.Entry) driver.Write {
	w := write(uuid, cond, revision, o.head())
	w.Array, w.Entries = arrayName, changes
	return w
}

func openArrays(t *testing.T, b driver.Backend) testStore {
	t.Helper()
	spec := books(byColor)
	spec.Arrays = []string{arrayName}
	s, err := b.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return testStore{s, t}
}

// wantShelf asserts that all reads return a shelf, whole and by its entries.
func (s testStore) wantShelf(uuid string, revision uint64, want shelf) {
	s.t.Helper()
	s.wantRecord(uuid, revision, want.body())
	page, err := s.Query(s.t.Context(), driver.Query{Index: "color", Equal: [][]byte{[]byte(want.color)}, Limit: 10})
	if err != nil || len(page.Records) != 1 || !bytes.Equal(page.Records[0].Body, want.body()) {
		s.t.Fatalf("a query finds %d records, or another body, error %v", len(page.Records), err)
	}
	uuids := make([]string, len(want.entries))
	for i, e := range want.entries {
		uuids[i] = e.UUID
	}
	r, entries, _, err := s.Store.(driver.EntryStore).GetEntries(s.t.Context(), uuid, arrayName, uuids)
	if err != nil || r.Revision != revision {
		s.t.Fatalf("GetEntries of %s: at %d, error %v; want %d", uuid, r.Revision, err, revision)
	}
	if entries == nil {
		return // the array is whole
	}
	if !bytes.Equal(r.Body, want.head()) || entries.Count != len(want.entries) {
		s.t.Fatalf("GetEntries of %s: %d entries, the head %s", uuid, entries.Count, r.Body)
	}
	for _, e := range want.entries {
		if !bytes.Equal(entries.Values[e.UUID], e.Value) {
			s.t.Fatalf("the entry %s is %.80s, want %.80s", e.UUID, entries.Values[e.UUID], e.Value)
		}
	}
}

// wantItems asserts that a table has a live record with the items of its chunks, two index entries, so many pieces of
// the overflow, and no garbage.
func wantItems(t *testing.T, url string, s testStore, table, uuid string, pieces int) {
	t.Helper()
	n, err := dynamostore.ChunkItems(t.Context(), s.Store, uuid)
	if err != nil {
		t.Fatal(err)
	}
	want := "i:2 m:1 r:1"
	if pieces > 0 {
		want = fmt.Sprintf("c:%d %s", pieces, want)
	}
	if n > 0 {
		want = fmt.Sprintf("a:%d %s", n, want)
	}
	if got := contents(t, url, table); got != want {
		t.Errorf("the table has %s, want %s", got, want)
	}
}
