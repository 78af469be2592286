package dynamostore_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/dynamostore"
	"belfry/test/backing"
)

// TestPendingEventsMayExceedAnItem writes a large object repeatedly without publishing:
// the pending events are several times larger than an item.
func TestPendingEventsMayExceedAnItem(t *testing.T) {
	t.Parallel()
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			server := start(t)
			b := openBackend(t, options(server.URL))
			s := openStore(t, b, byColor)
			const writes = 8
			payloads := make([]string, writes)
			for i := range uint64(writes) {
				w := write("a", i, i+1, []byte(incompressible(byte(i), 120<<10)))
				payloads[i] = incompressible(byte(100+i), 160<<10)
				w.Event.Payload = []byte(payloads[i])
				s.put(w)
			}
			events := s.pending()
			if len(events) != writes {
				t.Fatalf("%d events are pending, want %d", len(events), writes)
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
			s.wantPending()
			s.wantRecord("a", writes, []byte(incompressible(writes-1, 120<<10)))
			closeBackend(t, b)
			if got := contents(t, server.URL, "belfry_Books"); got != "i:1 m:1 r:1" {
				t.Errorf("the table has %s, want i:1 m:1 r:1", got)
			}
		})
	}
}

// TestRecordHasMorePendingEventsThanItsItemHolds fills a record with small events: the later ones go to the overflow.
func TestRecordHasMorePendingEventsThanItsItemHolds(t *testing.T) {
	t.Parallel()
	s := openStore(t, openBackend(t, options(backing.Dynalite(t).URL)))
	const writes = 130
	for i := range uint64(writes) {
		w := write("a", i, i+1, []byte("{}"))
		w.Event.Payload = []byte(incompressible(byte(i%200), 1000))
		s.put(w)
	}
	if events := s.pending(); len(events) != writes {
		t.Fatalf("%d events are pending, want %d", len(events), writes)
	}
	s.clear()
	s.wantPending()
}

// TestWriteMovesToOverflowWhenTheItemIsFull fills an item by creates over a tombstone,
// which don't know its size: a write then moves everything to the overflow.
func TestWriteMovesToOverflowWhenTheItemIsFull(t *testing.T) {
	t.Parallel()
	s := openStore(t, openBackend(t, options(backing.Dynoxide(t).URL)))
	const writes = 12
	var want []string
	for i := range uint64(writes) {
		w := write("a", 0, i+1, nil)
		w.Event.Payload = []byte(incompressible(byte(i), 70<<10))
		s.put(w)
		want = append(want, w.Event.ID)
	}
	w := write("a", 0, writes+1, []byte(incompressible(99, 90<<10)))
	s.put(w)
	s.wantRecord("a", writes+1, w.Body)
	s.wantPending(append(want, w.Event.ID)...)
	s.clear()
	s.wantPending()
}

// TestLargeObjectIsReadAtomically reads a large object while it is written repeatedly.
func TestLargeObjectIsReadAtomically(t *testing.T) {
	t.Parallel()
	b := openBackend(t, options(backing.Dynoxide(t).URL))
	s := openStore(t, b, byColor)
	const writes = 10
	bodies := make([]string, writes+1)
	for i := range uint64(writes + 1) {
		bodies[i] = incompressible(byte(i), 140<<10)
	}
	large := func(revision uint64) driver.Write {
		w := write("a", revision-1, revision, []byte(bodies[revision]))
		w.Keys = keys(body("red"))
		return w
	}
	s.put(large(1))
	var group sync.WaitGroup
	var done atomic.Bool
	group.Go(func() {
		defer done.Store(true)
		for revision := uint64(2); revision <= writes; revision++ {
			if err := s.Put(t.Context(), large(revision)); err != nil {
				t.Error(err)
			}
		}
	})
	for range 3 {
		group.Go(func() {
			for !done.Load() {
				r, _, err := s.Get(t.Context(), "a")
				if err != nil || string(r.Body) != bodies[r.Revision] {
					t.Errorf("Get: %d bytes at %d, error %v", len(r.Body), r.Revision, err)
				}
				page, err := s.Query(t.Context(),
					driver.Query{Index: "color", Equal: [][]byte{[]byte("red")}, Limit: 1})
				if err != nil || len(page.Records) != 1 ||
					string(page.Records[0].Body) != bodies[page.Records[0].Revision] {
					t.Errorf("Query: %d records, error %v", len(page.Records), err)
				}
			}
		})
	}
	group.Wait()
}

// TestPagesEndAtTheirSizeLimit limits the size of pages: all pages together are
// complete.
func TestPagesEndAtTheirSizeLimit(t *testing.T) {
	t.Parallel()
	b := openBackend(t, options(backing.Dynoxide(t).URL))
	s := openStore(t, b, byColor)
	const records = 110 // more than one read returns
	for i := range records {
		s.put(write(fmt.Sprintf("n%03d", i), 0, 1, body("red", incompressible(byte(i), 100))))
	}
	s.clear()
	const events, size = 50, 400
	for i := range uint64(events) {
		w := write("n000", i+1, i+2, body("red"))
		w.Event.Payload = []byte(incompressible(byte(i), size))
		s.put(w)
	}
	for _, n := range []int{1, size, 10*size - 1, 32*size - 1, 32 * size, 40 * size} {
		dynamostore.SetPageSize(b, n)
		if got := s.pending(); len(got) != events {
			t.Errorf("in pages of %d bytes %d events are pending, want %d", n, len(got), events)
		}
	}
	dynamostore.SetPageSize(b, 1)
	found, pages := 0, 0
	for q := (driver.Query{Index: "color", Equal: [][]byte{[]byte("red")}, Limit: 1000}); pages == 0 ||
		q.After != nil; pages++ {
		page, err := s.Query(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		found += len(page.Records)
		q.After = page.Next
	}
	if found != records || pages < 2 {
		t.Errorf("%d records were found in %d pages, want %d in several", found, pages, records)
	}
}

// TestTooLargeWritesChangeNothing makes writes that exceed the limits.
func TestTooLargeWritesChangeNothing(t *testing.T) {
	t.Parallel()
	server := backing.Dynoxide(t)
	b := openBackend(t, options(server.URL))
	s := openStore(t, b, byColor)
	wantKind(t, s.Put(t.Context(), write("a", 0, 1, make([]byte, 17<<20))), errs.TooLarge, "17825")
	w := write("a", 0, 1, body("red"))
	w.Event.Payload = make([]byte, 17<<20)
	wantKind(t, s.Put(t.Context(), w), errs.TooLarge)
	w = write("a", 0, 1000, body("red"))
	w.ExtraEvents = make([]driver.Event, 300)
	wantKind(t, s.Put(t.Context(), w), errs.TooLarge, "301")
	wantKind(t, s.Put(t.Context(), write(strings.Repeat("u", 600), 0, 1, body())), errs.Invalid)
	closeBackend(t, b)
	if got := contents(t, server.URL, "belfry_Books"); got != "m:1" {
		t.Errorf("the table has %s, want m:1", got)
	}
}

// TestStoreHasFiftyIndexes opens a store with more indexes than DynamoDB supports, and
// writes a record with many keys in each.
func TestStoreHasFiftyIndexes(t *testing.T) {
	t.Parallel()
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
		q := driver.Query{Index: ix.Name, Equal: [][]byte{[]byte(ix.Name), []byte("7")}, Limit: 10}
		if page, err := s.Query(t.Context(), q); err != nil || len(page.Records) != 1 {
			t.Fatalf("%s finds %d records, error %v; want 1", ix.Name, len(page.Records), err)
		}
	}
}

// TestTruncatedPositionsKeepTheirOrder has keys that differ only beyond the limit of a
// sort key.
func TestTruncatedPositionsKeepTheirOrder(t *testing.T) {
	t.Parallel()
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
			const records = 12
			for i := range records {
				uuid := fmt.Sprintf("n%02d", i*7%records)
				part := fmt.Appendf(nil, "%s%02d", long, i*7%records)
				key := driver.Key{Index: "wide", Parts: [][]byte{long, long, long, part}}
				if i*7%records%5 == 0 {
					key.Parts[3] = long
				}
				w := write(uuid, 0, 1, []byte("{}"))
				w.Keys = []driver.Key{key}
				if err := s.Put(t.Context(), w); err != nil {
					t.Fatal(err)
				}
			}
			for n := range records {
				if n%5 == 0 {
					want = append(want, fmt.Sprintf("n%02d", n))
				}
			}
			for n := range records {
				if n%5 != 0 {
					want = append(want, fmt.Sprintf("n%02d", n))
				}
			}
			for _, descending := range []bool{false, true} {
				for _, limit := range []int{1, 5, 100} {
					q := driver.Query{Index: "wide", Equal: [][]byte{long, long, long}, From: long, Limit: limit,
						Descending: descending}
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
