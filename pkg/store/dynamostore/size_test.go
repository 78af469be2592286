package dynamostore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/test/backing"
)

// TestLargeEventsWait writes a large object over and over while the bus is
// away: what waits is many times what an item holds.
func TestLargeEventsWait(t *testing.T) {
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			server := start(t)
			b := openBackend(t, options(server.URL))
			s := openStore(t, b, byColour)
			const writes = 12
			payloads := make([]string, writes)
			for i := range uint64(writes) {
				w := write("a", i, i+1, []byte(noise(byte(i), 120<<10)))
				payloads[i] = noise(byte(100+i), 200<<10)
				w.Event.Payload = []byte(payloads[i])
				s.put(w)
			}
			events := s.pending()
			if len(events) != writes {
				t.Fatalf("%d events wait, want %d", len(events), writes)
			}
			for i, e := range events {
				if e.Revision != uint64(i+1) || string(e.Payload) != payloads[i] { //nolint:gosec // small
					t.Fatalf("the event at %d changed", e.Revision)
				}
			}
			if err := s.Clear(t.Context(), events[:writes/2]); err != nil {
				t.Fatal(err)
			}
			if left := s.pending(); len(left) != writes-writes/2 || left[0].Revision != writes/2+1 {
				t.Fatalf("%d events are left, the first at %d", len(left), left[0].Revision)
			}
			s.clear()
			s.waits()
			s.holds("a", writes, []byte(noise(writes-1, 120<<10)))
			closeBackend(t, b)
			if got := contents(t, server.URL, "belfry_Books"); got != "i:1 m:1 r:1" {
				t.Errorf("the table holds %s, want i:1 m:1 r:1", got)
			}
		})
	}
}

// TestHundredsOfEventsWait fills a record with events that are small each.
func TestHundredsOfEventsWait(t *testing.T) {
	s := openStore(t, openBackend(t, options(backing.Dynalite(t).URL)))
	const writes = 400
	for i := range uint64(writes) {
		w := write("a", i, i+1, []byte("{}"))
		w.Event.Payload = []byte(noise(byte(i%200), 1000))
		s.put(w)
	}
	if events := s.pending(); len(events) != writes {
		t.Fatalf("%d events wait, want %d", len(events), writes)
	}
	s.clear()
	s.waits()
}

// TestItemOverflows lets two processes fill an item, neither of which knows
// what the other put there: a write then takes what it can out of the item.
func TestItemOverflows(t *testing.T) {
	server := backing.Dynoxide(t)
	one := openStore(t, openBackend(t, options(server.URL)))
	w := write("a", 0, 1000, nil)
	w.Event.Payload = []byte(noise(0, 200<<10))
	one.put(w)
	for i := range uint64(4) { // creations over a tombstone know nothing of what waits
		w := write("a", 0, 2000+i, nil)
		w.Event.Payload = []byte(noise(byte(i), 200<<10))
		one.put(w)
	}
	w = write("a", 0, 3000, []byte(noise(9, 90<<10)))
	one.put(w)
	one.holds("a", 3000, w.Body)
	one.waits("a/1000", "a/2000", "a/2001", "a/2002", "a/2003", "a/3000")
	one.clear()
	one.waits()
}

// TestTooLarge writes what no table takes, and leaves no trace.
func TestTooLarge(t *testing.T) {
	server := backing.Dynoxide(t)
	b := openBackend(t, options(server.URL))
	s := openStore(t, b, byColour)
	wantKind(t, s.Put(t.Context(), write("a", 0, 1, make([]byte, 17<<20))), errs.TooLarge, "17825")
	w := write("a", 0, 1, body("red"))
	w.Event.Payload = make([]byte, 17<<20)
	wantKind(t, s.Put(t.Context(), w), errs.TooLarge)
	w = write("a", 0, 1000, body("red"))
	w.Also = make([]driver.Event, 300)
	wantKind(t, s.Put(t.Context(), w), errs.TooLarge, "301")
	wantKind(t, s.Put(t.Context(), write(strings.Repeat("u", 600), 0, 1, body())), errs.Invalid)
	closeBackend(t, b)
	if got := contents(t, server.URL, "belfry_Books"); got != "m:1" {
		t.Errorf("the table holds %s, want m:1", got)
	}
}

// TestManyIndexes opens a store with more indexes than a table of DynamoDB's
// has, and a record with many keys in each.
func TestManyIndexes(t *testing.T) {
	b := openBackend(t, options(backing.Dynalite(t).URL))
	spec := driver.Spec{Name: "Books", Keys: keys}
	w := driver.Write{UUID: "a", Revision: 1, Body: []byte("{}")}
	for i := range 50 {
		name := fmt.Sprint("index", i)
		spec.Indexes = append(spec.Indexes, driver.Index{Name: name, Parts: 2, Multi: true})
		for n := range 30 {
			w.Keys = append(w.Keys, driver.Key{Index: name, Parts: [][]byte{[]byte(name), fmt.Append(nil, n)}})
		}
	}
	s, err := b.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	for _, ix := range spec.Indexes {
		q := driver.Query{Index: ix.Name, Equal: [][]byte{[]byte(ix.Name)}, From: []byte("7"), To: []byte("7"), Limit: 10}
		if page, err := s.Query(t.Context(), q); err != nil || len(page.Records) != 1 {
			t.Fatalf("%s finds %d records, error %v; want 1", ix.Name, len(page.Records), err)
		}
	}
}

// TestLongPlaces has many keys that differ only where a sort key has no more
// room.
func TestLongPlaces(t *testing.T) {
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			b := openBackend(t, options(start(t).URL))
			wide := driver.Index{Name: "wide", Parts: 4}
			s, err := b.Open(t.Context(), driver.Spec{Name: "Books", Indexes: []driver.Index{wide}, Keys: keys})
			if err != nil {
				t.Fatal(err)
			}
			long := []byte(strings.Repeat("x", driver.MaxPart-2))
			var want []string
			for i := range 20 {
				uuid := fmt.Sprintf("n%02d", i*7%20)
				part := append(long[:len(long):len(long)], fmt.Appendf(nil, "%02d", i*7%20)...)
				key := driver.Key{Index: "wide", Parts: [][]byte{long, long, long, part}}
				if i%5 == 0 {
					key.Parts[3] = long
				}
				w := write(uuid, 0, 1, []byte("{}"))
				w.Keys = []driver.Key{key}
				if err := s.Put(t.Context(), w); err != nil {
					t.Fatal(err)
				}
			}
			for n := range 20 {
				if n%5 == 0 {
					want = append(want, fmt.Sprintf("n%02d", n))
				}
			}
			for n := range 20 {
				if n%5 != 0 {
					want = append(want, fmt.Sprintf("n%02d", n))
				}
			}
			for _, descending := range []bool{false, true} {
				for _, limit := range []int{1, 3, 8, 100} {
					q := driver.Query{Index: "wide", Equal: [][]byte{long, long, long}, From: long, Limit: limit, Descending: descending}
					var got []string
					for {
						page, err := s.Query(t.Context(), q)
						if err != nil {
							t.Fatal(err)
						}
						for _, r := range page.Records {
							got = append(got, r.UUID)
						}
						if q.After = page.Next; q.After == nil {
							break
						}
					}
					if descending {
						slices.Reverse(got)
					}
					if strings.Join(got, " ") != strings.Join(want, " ") {
						t.Fatalf("pages of %d, descending %v, found %q, want %q", limit, descending, got, want)
					}
				}
			}
		})
	}
}
