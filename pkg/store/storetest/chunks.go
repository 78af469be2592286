package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

func chunkTests() []test {
	return []test{
		{"a large array is read as it was written", largeArray},
		{"an array grows to 1.5 MiB and shrinks again", growingArray},
		{"entries of a large array are read and changed alone", changedEntries},
		{"changes of entries have conditions, keys and events as any write", conditionsOfEntries},
		{"a large array is there after the end of a process", reopenedArray},
		{"an index is added over large arrays", indexedArray},
		{"handles that know no arrays read them, and write them whole", unknownArray},
		{"no further array is in chunks while a process can't read them", waitingArray},
	}
}

// entryOf is an entry of 100 bytes.
func entryOf(uuid, title string) json.RawMessage {
	padding := strings.Repeat("x", max(0, 100-24-len(uuid)-len(title)))
	return fmt.Appendf(nil, `{"uuid":%q,"title":%q}`, uuid, title+padding)
}

// of is a doc with entries.
func (d *doc) of(from, to int) *doc {
	for i := from; i < to; i++ {
		d.Entries = append(d.Entries, entryOf(fmt.Sprintf("e%05d", i), ""))
	}
	return d
}

// without is a copy of a doc without the entry of a uuid.
func (d *doc) without(uuid string) *doc {
	next := *d
	next.Entries = slices.DeleteFunc(slices.Clone(d.Entries), func(e json.RawMessage) bool {
		return strings.HasPrefix(string(e), fmt.Sprintf(`{"uuid":%q`, uuid))
	})
	return &next
}

// set is a copy of a doc with another entry of a uuid, at its place or at the end.
func (d *doc) set(uuid string, entry json.RawMessage) *doc {
	next := *d
	next.Entries = slices.Clone(d.Entries)
	for i, e := range next.Entries {
		if strings.HasPrefix(string(e), fmt.Sprintf(`{"uuid":%q`, uuid)) {
			next.Entries[i] = entry
			return &next
		}
	}
	next.Entries = append(next.Entries, entry)
	return &next
}

// wantEverywhere asserts that each method that reads records returns a doc.
func (s *testStore) wantEverywhere(uuid string, revision uint64, d *doc) {
	s.f.Helper()
	s.wantRecord(uuid, revision, d)
	want := driver.Record{UUID: uuid, Revision: revision, Body: d.encode()}
	many, err := driver.GetMany(s.f.ctx, s.Store, []string{uuid, "absent"})
	s.f.must(err)
	pages := [][]driver.Record{many}
	s.f.eventually(func() error {
		pages = pages[:1]
		for _, read := range []func() (driver.Page, error){
			func() (driver.Page, error) { return s.Query(s.f.ctx, driver.Query{Index: "color", Limit: 10}) },
			func() (driver.Page, error) { return s.Scan(s.f.ctx, nil, 10) },
			func() (driver.Page, error) { return s.ScanBackward(s.f.ctx, nil, 10) },
		} {
			page, err := read()
			if err != nil {
				return err
			}
			pages = append(pages, page.Records)
		}
		for i, page := range pages {
			at := slices.IndexFunc(page, func(r driver.Record) bool { return r.UUID == uuid })
			if at < 0 {
				return fmt.Errorf("page %d lacks %s", i, uuid)
			}
			if err := checkRecord(page[at], want); err != nil {
				return fmt.Errorf("page %d: %w", i, err)
			}
		}
		return nil
	})
}

func largeArray(f *fixture) {
	s := f.open("Books", byColor)
	small, large := keyed("color", "red"), keyed("color", "red").of(0, 3000)
	s.put("small", 0, 1, small)
	s.put("large", 0, 1, large)
	s.wantEverywhere("large", 1, large)
	s.wantEverywhere("small", 1, small)
	large.Text = "another field"
	s.put("large", 1, 2, large)
	s.wantEverywhere("large", 2, large)
	moved := keyed("color", "blue").of(1500, 3000).of(0, 1500)
	s.put("large", 2, 3, moved)
	s.wantEverywhere("large", 3, moved)
	s.wantMatches(driver.Query{Index: "color", Equal: parts("blue")}, "large")
	s.put("large", 3, 4, nil)
	s.wantRecord("large", 4, nil)
	again := keyed("color", "red").of(2900, 4000)
	s.put("large", 0, 5, again)
	s.wantEverywhere("large", 5, again)
	s.put("large", 5, 6, small)
	s.wantEverywhere("large", 6, small)
}

func growingArray(f *fixture) {
	s := f.open("Books", byColor)
	revision := uint64(0)
	for _, entries := range []int{0, 640, 700, 4000, 15_000, 10_000, 400, 300, 1} {
		d := keyed("color", "red").of(0, entries)
		s.put("a", revision, revision+1, d)
		revision++
		s.wantRecord("a", revision, d)
		s.clearAll(1)
	}
	s.wantMatches(driver.Query{Index: "color"}, "a")
}

// entryStore returns the store if it keeps arrays in chunks.
func (s *testStore) entryStore() driver.EntryStore {
	chunks, _ := s.Store.(driver.EntryStore)
	return chunks
}

// change asserts that a change of entries of the record a succeeds. d is the doc without its entries.
func (s *testStore) change(cond, revision uint64, d *doc, changes ...driver.Entry) {
	s.f.Helper()
	if err := s.Put(s.f.ctx, s.changing("a", cond, revision, d, changes...)); err != nil {
		s.f.Fatalf("a change of entries at %d if %d: %v", revision, cond, err)
	}
}

func (s *testStore) changing(uuid string, cond, revision uint64, d *doc, changes ...driver.Entry) driver.Write {
	w := s.write(uuid, cond, revision, d)
	w.Body = head(d)
	w.Array, w.Entries = arrayField, changes
	return w
}

// head is the body of a doc with an empty array.
func head(d *doc) []byte {
	h := *d
	h.Entries = nil
	body := h.encode()
	separator := ","
	if len(body) == len("{}") {
		separator = ""
	}
	return append(body[:len(body)-1], separator+`"`+arrayField+`":[]}`...)
}

func changedEntries(f *fixture) {
	s := f.open("Books", byColor)
	chunks := s.entryStore()
	if chunks == nil {
		return // it keeps records whole
	}
	d := keyed("color", "red").of(0, 3000)
	s.put("small", 0, 1, keyed("color", "red").of(0, 10))
	s.put("a", 0, 1, d)
	for name, of := range map[string]string{"whole": "small", "missing": "none"} {
		r, entries, found, err := chunks.GetEntries(f.ctx, of, arrayField, []string{"e00001"})
		if err != nil || entries != nil || found != (of == "small") || found && len(r.Body) < 1000 {
			f.Fatalf("%s: got %s, %v, found %v, error %v", name, describe(r), entries, found, err)
		}
	}
	if _, entries, found, err := chunks.GetEntries(f.ctx, "a", "another", nil); err != nil || entries != nil || !found {
		f.Fatalf("got the entries %v of another field, found %v, error %v", entries, found, err)
	}
	wantEntries := func(revision uint64, d *doc, uuids ...string) {
		f.Helper()
		r, entries, found, err := chunks.GetEntries(f.ctx, "a", arrayField, uuids)
		f.must(err)
		if !found || entries == nil {
			f.Fatalf("found %v, with the entries %v", found, entries)
		}
		f.must(checkRecord(r, driver.Record{UUID: "a", Revision: revision, Body: head(d)}))
		length := 0
		for _, e := range d.Entries {
			length += len(e) + 1
		}
		if entries.Count != len(d.Entries) || entries.Bytes != length {
			f.Fatalf("there are %d entries of %d bytes, want %d of %d", entries.Count, entries.Bytes, len(d.Entries),
				length)
		}
		for _, uuid := range uuids {
			at := slices.IndexFunc(d.Entries, func(e json.RawMessage) bool {
				return strings.HasPrefix(string(e), fmt.Sprintf(`{"uuid":%q`, uuid))
			})
			switch got, has := entries.Values[uuid]; {
			case has != (at >= 0):
				f.Fatalf("the entry %s is there: %v", uuid, has)
			case has && string(got) != string(d.Entries[at]):
				f.Fatalf("got the entry %s, want %s", got, d.Entries[at])
			}
		}
	}
	wantEntries(1, d)
	wantEntries(1, d, "e00000", "e02999", "absent", "e01234")

	changed := entryOf("e01234", "changed")
	s.change(1, 2, d, driver.Entry{UUID: "e01234", Value: changed})
	d = d.set("e01234", changed)
	s.wantEverywhere("a", 2, d)
	wantEntries(2, d, "e01234", "e01235")

	added, second := entryOf("added", "1"), entryOf("second", "2")
	s.change(2, 3, d, driver.Entry{UUID: "added", Value: added}, driver.Entry{UUID: "e00000"},
		driver.Entry{UUID: "second", Value: second}, driver.Entry{UUID: "absent"})
	d = d.without("e00000").set("added", added).set("second", second)
	s.wantEverywhere("a", 3, d)
	wantEntries(3, d, "added", "e00000", "second", "absent")

	s.change(3, 4, d) // no entry: the head alone
	d.Text = "and another field"
	s.change(4, 5, d, driver.Entry{UUID: "added"})
	d = d.without("added")
	s.wantEverywhere("a", 5, d)
	s.put("a", 5, 6, d)
	wantEntries(6, d, "e00001", "added")
	s.put("a", 6, 7, nil)
	r, entries, found, err := chunks.GetEntries(f.ctx, "a", arrayField, nil)
	if err != nil || entries != nil || !found || !r.Deleted {
		f.Fatalf("got %s, %v, found %v, error %v; want the tombstone", describe(r), entries, found, err)
	}
}

func conditionsOfEntries(f *fixture) {
	s := f.open("Books", byColor)
	if s.entryStore() == nil {
		return
	}
	d := keyed("color", "red").of(0, 1000)
	s.put("a", 0, 1, d)
	s.put("whole", 0, 1, keyed("color", "red").of(0, 10))
	change := driver.Entry{UUID: "e00001", Value: entryOf("e00001", "changed")}
	for name, w := range map[string]driver.Write{
		"of an older revision": s.changing("a", 7, 8, d, change),
		"of a missing record":  s.changing("none", 1, 2, d, change),
		"not a later one":      s.changing("a", 1, 1, d, change),
	} {
		if err := s.Put(f.ctx, w); errs.KindOf(err) != errs.Mismatch {
			f.Fatalf("a write %s: %v, want a mismatch", name, err)
		}
	}
	if err := s.Put(f.ctx, s.changing("whole", 1, 2, d, change)); err == nil {
		f.Fatal("entries of an array that is whole were changed")
	}
	s.wantEverywhere("a", 1, d)
	next := keyed("color", "blue").of(0, 1000).set("e00001", change.Value)
	s.change(1, 2, next, change)
	s.wantEverywhere("a", 2, next)
	s.wantMatches(driver.Query{Index: "color", Equal: parts("blue")}, "a")
	s.wantPending(eventOf("a", 1).ID, eventOf("a", 2).ID, eventOf("whole", 1).ID)
}

func reopenedArray(f *fixture) {
	if !f.harness.Features.Reopen {
		return
	}
	s := f.open("Books", byColor)
	d := keyed("color", "red").of(0, 2000)
	s.put("a", 0, 1, d)
	if s.entryStore() != nil {
		s.change(1, 2, d, driver.Entry{UUID: "e00007"})
		d = d.without("e00007")
	} else {
		d = d.without("e00007")
		s.put("a", 1, 2, d)
	}
	f.reopen()
	f.open("Books", byColor).wantEverywhere("a", 2, d)
}

func indexedArray(f *fixture) {
	s := f.open("Books")
	d := keyed("color", "red").of(0, 2000)
	s.put("a", 0, 1, d)
	if !f.harness.Features.Reopen {
		return
	}
	f.reopen()
	s = f.open("Books", byColor)
	s.wantEverywhere("a", 1, d)
}

// unknownArray has the arrays of a store whose mapping was removed.
func unknownArray(f *fixture) {
	s := f.open("Books", byColor)
	d := keyed("color", "red").of(0, 2000)
	s.put("a", 0, 1, d)
	other, err := f.backend.Open(f.ctx, driver.Spec{Name: "Books", Indexes: s.indexes, Keys: s.keys, Online: true})
	f.must(err)
	plain := &testStore{Store: other, f: f, name: s.name, indexes: s.indexes}
	plain.wantEverywhere("a", 1, d)
	d.Text = "written"
	plain.put("a", 1, 2, d)
	s.wantEverywhere("a", 2, d)
	s.put("a", 2, 3, d)
	s.wantInChunks("a", s.entryStore() != nil)
	plain.put("a", 3, 4, d)
	s.wantInChunks("a", false)
	s.put("a", 4, 5, d)
	plain.put("a", 5, 6, nil)
	s.wantRecord("a", 6, nil)
}

// wantInChunks asserts whether a record is kept in chunks.
func (s *testStore) wantInChunks(uuid string, want bool) {
	s.f.Helper()
	page, err := s.Scan(s.f.ctx, nil, 10)
	s.f.must(err)
	r, _, err := s.Get(s.f.ctx, uuid)
	s.f.must(err)
	for _, r := range append(page.Records, r) {
		if r.UUID == uuid && r.InChunks != want {
			s.f.Fatalf("%s is in chunks: %v, want %v", describe(r), r.InChunks, want)
		}
	}
}

// waitingArray has arrays while another process can't read chunks.
func waitingArray(f *fixture) {
	may := false
	s := f.open("Books", byColor)
	of := driver.Spec{Name: "Books", Indexes: s.indexes, Keys: s.keys, Online: true, Arrays: []string{arrayField},
		MoreChunks: func() bool { return may }}
	opened, err := f.backend.Open(f.ctx, of)
	f.must(err)
	s.Store = opened
	d := keyed("color", "red").of(0, 2000)
	s.put("a", 0, 1, d)
	s.wantInChunks("a", false)
	may = true
	d.Text = "written"
	s.put("a", 1, 2, d)
	s.wantInChunks("a", s.entryStore() != nil)
	may = false
	d.Text = "and again"
	s.put("a", 2, 3, d)
	s.wantInChunks("a", s.entryStore() != nil)
	s.wantEverywhere("a", 3, d)
	s.put("b", 0, 1, d)
	s.wantInChunks("b", false)
}
