package mongostore_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/mongostore"
	"belfry/test/backing"
	"belfry/test/kit"
)

// shelves are a store whose objects have an array of books.
func shelves(arrays ...string) driver.Spec {
	of := func(body []byte) []driver.Key {
		var s struct{ Tag string }
		_ = json.Unmarshal(body, &s)
		return keys([]byte(s.Tag))
	}
	return driver.Spec{Name: "Books", Indexes: []driver.Index{byTag}, Keys: of, Arrays: arrays}
}

func openShelves(t *testing.T, b *mongostore.Backend) driver.Store {
	t.Helper()
	s, err := b.Open(t.Context(), shelves("books"))
	must(t, err)
	return s
}

// shelf is an object with books.
type shelf struct {
	tag   string
	books []driver.Entry
}

// book is an entry of about 100 bytes.
func book(n int, title string) driver.Entry {
	uuid := fmt.Sprintf("e%05d", n)
	title += strings.Repeat("x", 70)
	return driver.Entry{UUID: uuid, Value: fmt.Appendf(nil, `{"uuid":%q,"title":%q}`, uuid, title)}
}

func shelfOf(tag string, count int) shelf {
	s := shelf{tag: tag}
	for n := range count {
		s.books = append(s.books, book(n, "first"))
	}
	return s
}

// with is the shelf after changes of its books.
func (s shelf) with(tag string, changes ...driver.Entry) shelf {
	next := shelf{tag: tag, books: slices.Clone(s.books)}
	for _, c := range changes {
		at := slices.IndexFunc(next.books, func(e driver.Entry) bool { return e.UUID == c.UUID })
		switch {
		case c.Value == nil:
			next.books = slices.Delete(next.books, at, at+1)
		case at < 0:
			next.books = append(next.books, c)
		default:
			next.books[at] = c
		}
	}
	return next
}

func (s shelf) body() string {
	values := make([][]byte, len(s.books))
	for i := range s.books {
		values[i] = s.books[i].Value
	}
	return fmt.Sprintf(`{"tag":%q,"books":[%s]}`, s.tag, bytes.Join(values, []byte(",")))
}

// write writes a shelf as a whole; nil deletes it.
func (s *shelf) write(cond, revision uint64) driver.Write {
	w := write("a", cond, revision, "")
	if s != nil {
		w.Body, w.Keys = []byte(s.body()), keys([]byte(s.tag))
	}
	return w
}

// changing writes some of its books.
func (s *shelf) changing(cond, revision uint64, changes ...driver.Entry) driver.Write {
	head := shelf{tag: s.tag}
	w := head.write(cond, revision)
	w.Array, w.Entries = "books", changes
	return w
}

func wantShelf(t *testing.T, s driver.Store, revision uint64, want *shelf) {
	t.Helper()
	r, found, err := s.Get(t.Context(), "a")
	must(t, err)
	switch {
	case !found && revision == 0:
	case r.Revision != revision || r.Deleted != (want == nil):
		t.Fatalf("the record is at revision %d, deleted %v; want %d", r.Revision, r.Deleted, revision)
	case want != nil && string(r.Body) != want.body():
		t.Fatalf("the body of revision %d is another one, of %d bytes: %.100s", revision, len(r.Body), r.Body)
	}
}

func wantTag(t *testing.T, s driver.Store, tag string, want int) {
	t.Helper()
	page, err := s.Query(t.Context(), queryTag(tag))
	must(t, err)
	if len(page.Records) != want {
		t.Errorf("%d records have the tag %s, want %d", len(page.Records), tag, want)
	}
}

// getBooks reads entries of the record, which is in chunks.
func getBooks(t *testing.T, s driver.Store, uuids ...string) (driver.Record, *driver.Entries) {
	t.Helper()
	r, entries, found, err := s.(driver.EntryStore).GetEntries(t.Context(), "a", "books", uuids)
	must(t, err)
	if !found || entries == nil {
		t.Fatalf("found %v, with the entries %v", found, entries)
	}
	return r, entries
}

// arrayWrite is a write of a record that has or gets a large array.
type arrayWrite struct {
	before, after *shelf
	write         driver.Write
}

func arrayWrites() map[string]arrayWrite {
	large, small, grown := shelfOf("red", 1000), shelfOf("red", 10), shelfOf("blue", 4000)
	changes := []driver.Entry{book(1, "second"), {UUID: "e00500"}, book(7000, "new")}
	next := large.with("blue", changes...)
	return map[string]arrayWrite{
		"a write of the whole": {&large, &next, next.write(1, 2)},
		"a change of entries":  {&large, &next, next.changing(1, 2, changes...)},
		"more chunks":          {&large, &grown, grown.write(1, 2)},
		"no more chunks":       {&large, &small, small.write(1, 2)},
		"the first chunks":     {&small, &next, next.write(1, 2)},
		"a delete":             {&large, nil, (*shelf)(nil).write(1, 2)},
	}
}

// TestWritesOfLargeArraysAreMadeOnceOrNot: the reply of an update is lost, or the server refuses it. The record is as
// after the write, or as before.
func TestWritesOfLargeArraysAreMadeOnceOrNot(t *testing.T) {
	t.Parallel()
	p := newProxy(t, backing.StartMongo(t).Address)
	b := open(t, "mongodb://"+p.address)
	for name, c := range arrayWrites() {
		for _, read := range []bool{false, true} {
			for _, f := range []fault{{lost: true}, refuses(1, "the database system is shutting down")} {
				spec := shelves("books")
				spec.Name = fmt.Sprint(name, read, f.lost)
				s, err := b.Open(t.Context(), spec)
				must(t, err)
				must(t, s.Put(t.Context(), c.before.write(0, 1)))
				if read {
					_, _, _, err := s.(driver.EntryStore).GetEntries(t.Context(), "a", "books",
						[]string{"e00001", "e00500", "e07000"})
					must(t, err)
				}
				p.first(1000, "update", f)
				if f.lost {
					p.first(1, "update", f)
				}
				wantKind(t, s.Put(t.Context(), c.write), errs.Unavailable)
				p.faults(nil)
				if !f.lost {
					wantShelf(t, s, 1, c.before)
					wantTag(t, s, "red", 1)
					must(t, s.Put(t.Context(), c.write))
				}
				wantShelf(t, s, 2, c.after)
				if c.after != nil {
					wantTag(t, s, c.after.tag, 1)
				}
				wantKind(t, s.Put(t.Context(), c.write), errs.Mismatch)
				wantShelf(t, s, 2, c.after)
				if got := waiting(t, s); got != "a/1 a/2" {
					t.Errorf("%s: the events %q wait", name, got)
				}
			}
		}
	}
}

// TestAConflictLeavesTheChunksOfTheOtherWrite: another process writes after this one has read, before its write or in
// the middle of it.
func TestAConflictLeavesTheChunksOfTheOtherWrite(t *testing.T) {
	t.Parallel()
	server := backing.StartMongo(t)
	p := newProxy(t, server.Address)
	b, direct := open(t, "mongodb://"+p.address), open(t, server.URL)
	theirs := shelfOf("green", 3000)
	for name, c := range arrayWrites() {
		for _, during := range []bool{false, true} {
			spec := shelves("books")
			spec.Name = fmt.Sprint(name, during)
			s, err := b.Open(t.Context(), spec)
			must(t, err)
			spec.Online = true
			other, err := direct.Open(t.Context(), spec)
			must(t, err)
			must(t, s.Put(t.Context(), c.before.write(0, 1)))
			_, _, _, err = s.(driver.EntryStore).GetEntries(t.Context(), "a", "books",
				[]string{"e00001", "e00002", "e00500", "e07000"})
			must(t, err)
			if during {
				p.faults(func(command string) fault {
					if command == "update" && p.count[command] == 1 {
						if err := other.Put(t.Context(), theirs.write(1, 5)); err != nil {
							t.Error(err)
						}
					}
					return fault{}
				})
			} else {
				must(t, other.Put(t.Context(), theirs.write(1, 5)))
			}
			wantKind(t, s.Put(t.Context(), c.write), errs.Mismatch)
			p.faults(nil)
			wantShelf(t, s, 5, &theirs)
			wantTag(t, s, "green", 1)
			change := book(2, "ours") // what was read of revision 1 is still known, unless a write has used it
			ours := theirs.with("green", change)
			must(t, s.Put(t.Context(), ours.changing(5, 6, change)))
			wantShelf(t, s, 6, &ours)
			if _, entries := getBooks(t, s, "e00001"); string(entries.Values["e00001"]) != string(book(1, "first").Value) {
				t.Errorf("%s: the entry is %s", name, entries.Values["e00001"])
			}
		}
	}
}

// TestEntriesAreReadAtOneRevision: another process gives the array more chunks, or none, between the two reads of
// GetEntries, and after the number of chunks is known.
func TestEntriesAreReadAtOneRevision(t *testing.T) {
	t.Parallel()
	server := backing.StartMongo(t)
	p := newProxy(t, server.Address)
	s := openShelves(t, open(t, "mongodb://"+p.address))
	online := shelves("books")
	online.Online = true
	other, err := open(t, server.URL).Open(t.Context(), online)
	must(t, err)
	first := shelfOf("red", 1000)
	must(t, s.Put(t.Context(), first.write(0, 1)))
	revision, wants := uint64(1), []int{4000, 10, 1000, 0, 8000}
	next := func() {
		w := (*shelf)(nil).write(revision, revision+1)
		if len(wants) > 0 && wants[0] > 0 {
			o := shelfOf("red", wants[0])
			w = o.write(revision, revision+1)
			if revision == 5 { // it was deleted
				w.IfRevision = 0
			}
		}
		if err := other.Put(t.Context(), w); err != nil {
			t.Error(err)
		}
		revision, wants = revision+1, wants[1:]
	}
	for len(wants) > 0 {
		want := wants[0]
		p.faults(func(command string) fault {
			if command == "find" && p.count[command] == 2 && revision == 1 {
				next()
			}
			return fault{}
		})
		if revision > 1 {
			next()
		}
		r, entries, found, err := s.(driver.EntryStore).GetEntries(t.Context(), "a", "books", []string{"e00001", "e07999"})
		must(t, err)
		o := shelfOf("red", want)
		switch {
		case !found || r.Revision != revision || r.Deleted != (want == 0):
			t.Fatalf("found %v at revision %d, deleted %v; want %d", found, r.Revision, r.Deleted, revision)
		case want == 10 && (entries != nil || string(r.Body) != o.body()):
			t.Fatalf("the small record has the entries %v", entries)
		case want > 10 && (entries == nil || entries.Count != want || entries.Values["e00001"] == nil ||
			(entries.Values["e07999"] != nil) != (want == 8000)):
			t.Fatalf("the record with %d entries has the entries %v", want, entries)
		}
	}
}

// TestTheReleaseBeforeReportsARecordInChunks: it finds a record by the field of its body, and refuses a body that is no
// binary value. It must not find an empty array, nor miss the record.
func TestTheReleaseBeforeReportsARecordInChunks(t *testing.T) {
	t.Parallel()
	url := backing.Mongo(t)
	s := openShelves(t, open(t, url))
	kindOf := func() bson.Type {
		doc, err := administrator(t, url).Collection("Books").FindOne(t.Context(),
			bson.D{{Key: "_id", Value: "a"}, {Key: "b", Value: bson.D{{Key: "$exists", Value: true}}}}).Raw()
		must(t, err)
		return doc.Lookup("b").Type
	}
	large, small := shelfOf("red", 1000), shelfOf("red", 10)
	must(t, s.Put(t.Context(), large.write(0, 1)))
	if kind := kindOf(); kind != bson.TypeEmbeddedDocument {
		t.Errorf("a body in chunks is a field of the type %v, which the release before may read", kind)
	}
	must(t, s.Put(t.Context(), small.write(1, 2)))
	if kind := kindOf(); kind != bson.TypeBinary {
		t.Errorf("a small body is a field of the type %v", kind)
	}
}

// TestDamagedChunksAreReported: no read and no write takes a chunk that is missing for an empty one.
func TestDamagedChunksAreReported(t *testing.T) {
	t.Parallel()
	url := backing.Mongo(t)
	b := open(t, url)
	large := shelfOf("red", 1000)
	next := large.with("red", book(1, "second"))
	for name, change := range map[string]bson.D{
		"a chunk is missing":      {{Key: "$unset", Value: bson.D{{Key: "b.c.books.0", Value: ""}}}},
		"a chunk is a text":       {{Key: "$set", Value: bson.D{{Key: "b.c.books.0", Value: "x"}}}},
		"the chunks are missing":  {{Key: "$unset", Value: bson.D{{Key: "b.c", Value: ""}}}},
		"the array is malformed":  {{Key: "$set", Value: bson.D{{Key: "b.m", Value: bson.Binary{Data: []byte("x")}}}}},
		"the array is of no type": {{Key: "$set", Value: bson.D{{Key: "b.m", Value: 1}}}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := shelves("books")
			spec.Name = name
			s, err := b.Open(t.Context(), spec)
			must(t, err)
			must(t, s.Put(t.Context(), large.write(0, 1)))
			names, err := administrator(t, url).ListCollectionNames(t.Context(), bson.D{})
			must(t, err)
			for _, collection := range names {
				_, err := administrator(t, url).Collection(collection).UpdateOne(t.Context(),
					bson.D{{Key: "_id", Value: "a"}, {Key: "b.m", Value: bson.D{{Key: "$exists", Value: true}}}}, change)
				must(t, err)
			}
			var uuids []string
			for _, e := range large.books {
				uuids = append(uuids, e.UUID)
			}
			_, _, err = s.Get(t.Context(), "a")
			_, scanErr := s.Scan(t.Context(), nil, 10)
			_, _, _, entriesErr := s.(driver.EntryStore).GetEntries(t.Context(), "a", "books", uuids)
			for _, err := range []error{err, scanErr, entriesErr, s.Put(t.Context(), next.write(1, 2)),
				s.Put(t.Context(), next.changing(1, 2, next.books...))} {
				if e := wantKind(t, err, errs.Internal); !strings.Contains(e.Message, `"a"`) {
					t.Errorf("the message %q doesn't name the record", e.Message)
				}
			}
			must(t, s.Put(t.Context(), (*shelf)(nil).write(1, 2)))
		})
	}
}

// TestArraysMayHaveAnyName: names with a meaning in a path or an update, and several of them.
func TestArraysMayHaveAnyName(t *testing.T) {
	t.Parallel()
	names := []string{"a.b", "$set", "0", "%2e", "Bücher", "a b", "a", "a.c"}
	s, err := open(t, backing.Mongo(t)).Open(t.Context(), shelves(names...))
	must(t, err)
	fields, changed := []string{`"tag":"red"`}, []string{`"tag":"red"`}
	array := strings.TrimPrefix(shelfOf("", 1000).body(), `{"tag":"","books":`)
	array = strings.TrimSuffix(array, "}")
	for _, name := range names {
		fields = append(fields, fmt.Sprintf("%q:%s", name, array))
		changed = append(changed, fmt.Sprintf("%q:[]", name))
	}
	w := write("a", 0, 1, "")
	w.Body, w.Keys = []byte("{"+strings.Join(fields, ",")+"}"), keys([]byte("red"))
	must(t, s.Put(t.Context(), w))
	for i, name := range names {
		revision := uint64(i + 1)
		r, entries, _, err := s.(driver.EntryStore).GetEntries(t.Context(), "a", name, []string{"e00007"})
		must(t, err)
		if r.Revision != revision || entries == nil || len(entries.Values) != 1 {
			t.Fatalf("%s: got the entries %v at revision %d", name, entries, r.Revision)
		}
		c := write("a", revision, revision+1, "")
		c.Body, c.Keys = []byte("{"+strings.Join(changed, ",")+"}"), w.Keys
		c.Array, c.Entries = name, []driver.Entry{book(7, name)}
		must(t, s.Put(t.Context(), c))
		fields[i+1] = strings.Replace(fields[i+1], string(book(7, "first").Value), string(book(7, name).Value), 1)
		got, _, err := s.Get(t.Context(), "a")
		must(t, err)
		if want := "{" + strings.Join(fields, ",") + "}"; string(got.Body) != want || !got.InChunks {
			t.Fatalf("%s: the body is another one, of %d bytes instead of %d", name, len(got.Body), len(want))
		}
	}
}

// TestChangesOfEntriesSurviveAKilledServer kills the server while entries change. The record is as before or as after
// the change whose outcome is unknown, and has all that were acknowledged.
func TestChangesOfEntriesSurviveAKilledServer(t *testing.T) {
	const kills, changes = 3, 5
	server := backing.StartMongo(t)
	s := openShelves(t, open(t, server.URL+"?serverSelectionTimeoutMS=200"))
	now, revision := shelfOf("red", 1000), uint64(1)
	must(t, s.Put(t.Context(), now.write(0, 1)))
	for range kills {
		killed := make(chan struct{})
		for made := 1; ; made++ {
			if made == changes {
				go func() { server.Kill(); close(killed) }()
			}
			change := book(int(revision*37%1000), fmt.Sprint(revision))
			next := now.with("red", change)
			err := s.Put(t.Context(), next.changing(revision, revision+1, change))
			if err == nil {
				now, revision = next, revision+1
				continue
			}
			wantKind(t, err, errs.Unavailable)
			if made < changes {
				t.Fatal(err)
			}
			<-killed
			server.Restart(t)
			var r driver.Record
			kit.WaitUntil(t, func() (err error) { r, _, err = s.Get(t.Context(), "a"); return err })
			if r.Revision == revision+1 {
				now, revision = next, revision+1
			}
			break
		}
		wantShelf(t, s, revision, &now)
	}
}

// TestCostOfALargeArray counts the requests and bytes of an array of a mebibyte, and of a small one.
func TestCostOfALargeArray(t *testing.T) {
	p := newProxy(t, backing.StartMongo(t).Address)
	b := open(t, "mongodb://"+p.address)
	s := openShelves(t, b)
	other := openShelves(t, b)
	plain, err := b.Open(t.Context(), func() driver.Spec { o := shelves(); o.Online = true; return o }())
	must(t, err)
	large, small := shelfOf("red", 10_700), shelfOf("red", 10)
	for _, s := range []driver.Store{s, other, plain} { // are there indexes that it does not write?
		w := write("first", 0, 1, "")
		w.Body, w.Keys = []byte("{}"), keys(nil)
		_ = s.Put(t.Context(), w)
	}
	put := func(s driver.Store, w driver.Write) func() {
		return func() { must(t, s.Put(t.Context(), w)) }
	}
	get := func(uuid string) func() {
		return func() {
			_, _, _, err := s.(driver.EntryStore).GetEntries(t.Context(), uuid, "books", []string{"e00007"})
			must(t, err)
		}
	}
	second := large.with("red", book(7, "second"))
	third := large.with("red", book(7, "third"))
	for _, c := range []struct {
		name string
		act  func()
		want string
		most int // bytes
	}{
		{"create a small one", put(s, small.write(0, 1)), "map[insert:1]", 4 << 10},
		{"get entries of a small one", get("a"), "map[find:1]", 4 << 10},
		{"update a small one", put(s, small.write(1, 2)), "map[update:1]", 4 << 10},
		{"get a large one without chunks before", func() {
			put(plain, large.write(2, 3))()
			p.faults(nil)
			wantShelf(t, plain, 3, &large)
		}, "map[find:1]", 2 << 20},
		{"write it, without chunks", put(plain, second.write(3, 4)), "map[update:1]", 2 << 20},
		{"put it in chunks", put(s, large.write(4, 5)), "map[find:1 update:1]", 2 << 20},
		{"get an entry", get("a"), "map[find:2]", 20 << 10},
		{"change the entry", put(s, second.changing(5, 6, book(7, "second"))), "map[update:1]", 20 << 10},
		{"get the entry again", get("a"), "map[find:1]", 20 << 10},
		{"change it again", put(s, third.changing(6, 7, book(7, "third"))), "map[update:1]", 20 << 10},
		{"change it without a get", put(s, second.changing(7, 8, book(7, "second"))), "map[find:1 update:1]", 30 << 10},
		{"change it elsewhere", put(other, third.changing(8, 9, book(7, "third"))), "map[find:2 update:1]", 30 << 10},
		{"get the whole", func() { wantShelf(t, s, 9, &third) }, "map[find:1]", 2 << 20},
		{"write the whole", put(s, large.write(9, 10)), "map[find:1 update:1]", 5 << 18},
		{"make it small", put(s, small.write(10, 11)), "map[update:1]", 4 << 10},
		{"delete it", put(s, (*shelf)(nil).write(11, 12)), "map[update:1]", 4 << 10},
		{"create it", put(s, large.write(0, 13)), "map[find:1 insert:1 update:1]", 3 << 20},
	} {
		p.faults(nil)
		c.act()
		got, bytes := fmt.Sprint(p.commands()), p.cost()
		t.Logf("%-40s %8d bytes, %s", c.name, bytes, got)
		if got != c.want || bytes > c.most {
			t.Errorf("%s cost %s of %d bytes, want %s of at most %d", c.name, got, bytes, c.want, c.most)
		}
	}
}
