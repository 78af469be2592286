package dynamostore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/dynamostore"
	"belfry/test/backing"
)

// arrayWrites are writes of an object whose array is in chunks, or will be.
var arrayWrites = map[string]func() (before *shelf, w driver.Write, after *shelf){
	"a create": func() (*shelf, driver.Write, *shelf) {
		o := shelfOf("red", 150, 700)
		return nil, write("a", 0, 2, o.body()), &o
	},
	"a write of the whole": func() (*shelf, driver.Write, *shelf) {
		o := shelfOf("red", 150, 700)
		next := o.with(entryOf("e0001", 800, 1), entryOf("e0100", 700, 1), driver.Entry{UUID: "e0050"})
		next.color = "blue"
		return &o, write("a", 1, 2, next.body()), &next
	},
	"a change of entries": func() (*shelf, driver.Write, *shelf) {
		o := shelfOf("red", 150, 700)
		changes := []driver.Entry{entryOf("e0001", 800, 1), entryOf("new", 700, 1), {UUID: "e0050"}}
		next := o.with(changes...)
		next.color = "blue"
		return &o, next.changing("a", 1, 2, changes...), &next
	},
	"a change of entries beside a large text": func() (*shelf, driver.Write, *shelf) {
		o := shelfOf("red", 150, 700)
		o.text = incompressible(1, 140<<10)
		next := o.with(entryOf("e0001", 800, 1))
		next.text = incompressible(2, 140<<10)
		return &o, next.changing("a", 1, 2, entryOf("e0001", 800, 1)), &next
	},
	"a write that makes the array small": func() (*shelf, driver.Write, *shelf) {
		o, next := shelfOf("red", 150, 700), shelfOf("blue", 10, 700)
		return &o, write("a", 1, 2, next.body()), &next
	},
	"a write that makes the array large": func() (*shelf, driver.Write, *shelf) {
		o, next := shelfOf("red", 10, 700), shelfOf("blue", 150, 700)
		return &o, write("a", 1, 2, next.body()), &next
	},
	"a delete": func() (*shelf, driver.Write, *shelf) {
		o := shelfOf("red", 150, 700)
		return &o, write("a", 1, 2, nil), nil
	},
}

func isWrite(op string) bool { return op == "PutItem" || op == "UpdateItem" || op == "BatchWriteItem" }

// TestArraySurvivesACrashAtAnyStep ends a process before each request of a write, or after the server has executed it:
// the object is as before the write or as after it, and two days later no garbage is left. A single lost reply changes
// nothing.
func TestArraySurvivesACrashAtAnyStep(t *testing.T) {
	t.Parallel()
	server := backing.Dynoxide(t)
	var tables atomic.Int64
	for name, of := range arrayWrites {
		for _, kind := range []string{"killed before", "killed after", "with a lost reply of"} {
			t.Run(name+" "+kind+" a request", func(t *testing.T) {
				t.Parallel()
				for n, hit := 1, true; hit; n++ {
					opts := options(server.URL)
					opts.TablePrefix = fmt.Sprintf("crash%d_", tables.Add(1))
					hit = crashAt(t, opts, n, kind, of)
				}
			})
		}
	}
}

// crashAt injects a fault into the nth request of a write. It returns false if the write has fewer requests.
func crashAt(t *testing.T, opts dynamostore.Options, n int, kind string,
	of func() (*shelf, driver.Write, *shelf)) (hit bool) {
	before, w, after := of()
	server := opts.Endpoint
	if before != nil {
		b := openBackend(t, opts)
		s := openArrays(t, b)
		s.put(write("a", 0, 1, before.body()))
		s.clear()
		closeBackend(t, b)
	}
	g := newProxy(t, server)
	opts.Endpoint = g.url
	b := openBackend(t, opts)
	s := openArrays(t, b)
	s.put(write("other", 0, 1, body())) // the first write reads the catalog
	s.put(write("other", 1, 2, nil))
	closeBackend(t, b)
	b = openBackend(t, opts)
	s = openArrays(t, b)
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	requests := 0
	g.set(func(op, _ string) fault {
		if !isWrite(op) {
			return fault{}
		}
		if requests++; requests < n {
			return fault{}
		}
		first := requests == n
		switch {
		case kind == "with a lost reply of":
			return fault{cutReply: first}
		case first && kind == "killed after":
			return fault{cutReply: true}
		default:
			kill()
			return fault{drop: true}
		}
	})
	err := s.Put(ctx, w)
	if ctx.Err() != nil {
		dynamostore.SetCloseTime(b, 0)
		_ = b.Close()
	}
	closeBackend(t, b)
	g.mu.Lock()
	hit = requests >= n
	g.mu.Unlock()
	g.set(nil)
	if err != nil && (kind == "with a lost reply of" || !hit) {
		t.Fatalf("the request %d: %v", n, err)
	}
	opts.Endpoint = server
	checkAfterCrash(t, opts, err == nil, before, after)
	return hit
}

// checkAfterCrash opens the store two days later.
func checkAfterCrash(t *testing.T, opts dynamostore.Options, acknowledged bool, before, after *shelf) {
	t.Helper()
	b := openBackend(t, opts)
	dynamostore.SetClock(b, func() time.Time { return time.Now().Add(48 * time.Hour) })
	s := openArrays(t, b)
	r, found, err := s.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	now := before
	if r.Revision == 2 {
		now = after
	}
	if acknowledged && r.Revision != 2 {
		t.Fatalf("an acknowledged write is lost: found %v at %d", found, r.Revision)
	}
	s.clear()
	for _, color := range []string{"red", "blue"} {
		if now != nil && color == now.color {
			s.wantMatches(color, "a")
		} else {
			s.wantMatches(color)
		}
	}
	if now != nil {
		s.wantShelf("a", r.Revision, *now)
	}
	if _, err := s.Scan(t.Context(), nil, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Purge(t.Context(), 1<<62, 100); err != nil {
		t.Fatal(err)
	}
	closeBackend(t, b)
	table := opts.TablePrefix + "Books"
	if now != nil {
		wantItems(t, opts.Endpoint, s, table, "a", pieceCount([]byte(now.text)))
	} else if got := contents(t, opts.Endpoint, table); got != "m:1" {
		t.Errorf("the table has %s, want m:1", got)
	}
}

// TestChangeOfEntriesLosesToAnotherProcess has another process change, delete or reindex the object after its entries
// have been read.
func TestChangeOfEntriesLosesToAnotherProcess(t *testing.T) {
	t.Parallel()
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t)
			b, another := openBackend(t, options(server.URL)), openBackend(t, options(server.URL))
			s, other := openArrays(t, b), openArrays(t, another)
			o := shelfOf("red", 150, 700)
			s.put(write("a", 0, 1, o.body()))
			read := func() {
				t.Helper()
				if _, entries, _, err := s.Store.(driver.EntryStore).GetEntries(t.Context(), "a", arrayName,
					[]string{"e0001"}); err != nil || entries == nil {
					t.Fatalf("got the entries %v, error %v", entries, err)
				}
			}
			read()
			mine, others := entryOf("e0001", 700, 1), entryOf("e0001", 700, 2)
			o = o.with(others)
			other.put(o.changing("a", 1, 2, others))
			closeBackend(t, another) // the chunk that was read is gone
			wantKind(t, s.Put(t.Context(), o.changing("a", 1, 3, mine)), errs.Mismatch)
			s.wantShelf("a", 2, o)

			read()
			another = openBackend(t, options(server.URL))
			spec := books(byColor, driver.Index{Name: "second", Parts: 1, Multi: true})
			spec.Online, spec.Arrays = true, []string{arrayName}
			spec.Keys = func(body []byte) []driver.Key {
				return append(keys(body), driver.Key{Index: "second", Parts: [][]byte{[]byte("x")}})
			}
			online, err := another.Open(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if err := driver.BuildIndexes(t.Context(), online); err != nil {
				t.Fatal(err)
			}
			testStore{online, t}.wantShelf("a", 2, o)
			o = o.with(mine)
			s.put(o.changing("a", 2, 3, mine)) // as if it had read the object again
			s.wantShelf("a", 3, o)
			s.put(write("a", 3, 4, nil))
			wantKind(t, s.Put(t.Context(), o.changing("a", 3, 5, mine)), errs.Mismatch)
			s.clear()
			if n, err := s.Purge(t.Context(), 1<<62, 10); n != 1 || err != nil {
				t.Fatalf("%d were purged, error %v", n, err)
			}
			closeBackend(t, b)
			closeBackend(t, another)
			if got := contents(t, server.URL, "belfry_Books"); strings.Contains(got, "a:") || strings.Contains(got, "n:") {
				t.Errorf("the table has %s", got)
			}
		})
	}
}

// TestArrayIsReadAtomically reads an object in two processes while it is changed in one: by entries, and as a whole.
func TestArrayIsReadAtomically(t *testing.T) {
	t.Parallel()
	server := backing.Dynoxide(t)
	b := openBackend(t, options(server.URL))
	s := openArrays(t, b)
	const writes = 30
	shelves := make([]shelf, writes+1)
	shelves[1] = shelfOf("red", 150, 700)
	s.put(write("a", 0, 1, shelves[1].body()))
	var group sync.WaitGroup
	var done atomic.Bool
	stores := []testStore{s, openArrays(t, openBackend(t, options(server.URL)))}
	changesAt := func(revision int) []driver.Entry {
		return []driver.Entry{entryOf(fmt.Sprintf("e%04d", revision%7), 700, revision), entryOf("e0149", 700, revision)}
	}
	for revision := 2; revision <= writes; revision++ {
		shelves[revision] = shelves[revision-1].with(changesAt(revision)...)
	}
	for _, s := range stores {
		group.Go(func() {
			for !done.Load() {
				r, _, err := s.Get(t.Context(), "a")
				if err != nil || !bytes.Equal(r.Body, shelves[r.Revision].body()) {
					t.Errorf("Get: another body at %d, error %v", r.Revision, err)
					return
				}
				uuids := []string{"e0000", "e0001", "e0002", "e0149"}
				r, entries, _, err := s.Store.(driver.EntryStore).GetEntries(t.Context(), "a", arrayName, uuids)
				if err != nil || entries == nil {
					t.Errorf("GetEntries: error %v", err)
					return
				}
				for _, e := range shelves[r.Revision].entries {
					if slices.Contains(uuids, e.UUID) && !bytes.Equal(entries.Values[e.UUID], e.Value) {
						t.Errorf("GetEntries: another entry %s at %d", e.UUID, r.Revision)
					}
				}
			}
		})
	}
	for revision := 2; revision <= writes; revision++ {
		w := write("a", uint64(revision-1), uint64(revision), shelves[revision].body()) //nolint:gosec // small
		if revision%5 != 0 {
			w = shelves[revision].changing("a", w.IfRevision, w.Revision, changesAt(revision)...)
		}
		s.put(w)
	}
	done.Store(true)
	group.Wait()
	s.wantShelf("a", writes, shelves[writes])
	closeBackend(t, b)
	wantItems(t, server.URL, s, "belfry_Books", "a", 0)
}

// TestArrayThatAlwaysChangesIsRead has another process change an entry, and remove the chunk that it replaces, in the
// middle of each read of all chunks.
func TestArrayThatAlwaysChangesIsRead(t *testing.T) {
	t.Parallel()
	g := newProxy(t, backing.Dynoxide(t).URL)
	first := openBackend(t, options(g.url))
	o, revision := shelfOf("red", 150, 700), uint64(1)
	openArrays(t, first).put(write("a", 0, 1, o.body()))
	closeBackend(t, first)
	s := openArrays(t, openBackend(t, options(g.url)))
	g.set(func(op, body string) fault {
		if op == "Query" && strings.Contains(body, `"a.a"`) {
			b := openBackend(t, options(g.server))
			changed := entryOf(fmt.Sprintf("e%04d", revision), 700, int(revision)) //nolint:gosec // small
			o = o.with(changed)
			openArrays(t, b).put(o.changing("a", revision, revision+1, changed))
			closeBackend(t, b)
			revision++
		}
		return fault{}
	})
	s.wantRecord("a", 2, o.with(entryOf("e0001", 700, 1)).body())
	if ops := strings.Join(g.seen(), " "); ops != "GetItem Query GetItem BatchGetItem" {
		t.Errorf("it takes the requests %s", ops)
	}
	page, err := s.Query(t.Context(), driver.Query{Index: "color", Equal: [][]byte{[]byte("red")}, Limit: 10})
	if err != nil || len(page.Records) != 1 || !bytes.Equal(page.Records[0].Body, o.body()) {
		t.Fatalf("a query finds %d records, or another body, error %v", len(page.Records), err)
	}
	kept := o
	stale := write("a", revision, revision+5, kept.body()) // which reads the chunks of a record that has changed then
	g.set(func(op, body string) fault {
		if op == "Query" && strings.Contains(body, `"a.a"`) {
			b := openBackend(t, options(g.server))
			openArrays(t, b).put(o.changing("a", revision, revision+1, driver.Entry{UUID: "e0009"}))
			closeBackend(t, b)
		}
		return fault{}
	})
	wantKind(t, s.Put(t.Context(), stale), errs.Mismatch)
	if ops := g.seen(); slices.ContainsFunc(ops, isWrite) {
		t.Errorf("a write that comes too late makes the requests %q", ops)
	}
}

// TestChangesOfEntriesInTwoProcesses has both change the same array at once: none is lost.
func TestChangesOfEntriesInTwoProcesses(t *testing.T) {
	t.Parallel()
	server := backing.Dynoxide(t)
	var backends []*dynamostore.Backend
	var stores []testStore
	for range 2 {
		b := openBackend(t, options(server.URL))
		backends, stores = append(backends, b), append(stores, openArrays(t, b))
	}
	o := shelfOf("red", 150, 700)
	stores[0].put(write("a", 0, 1, o.body()))
	var group sync.WaitGroup
	const changes = 10
	for i, s := range stores {
		group.Go(func() {
			for n := range changes {
				added := entryOf(fmt.Sprintf("new%d-%d", i, n), 100, n)
				for {
					r, _, _, err := s.Store.(driver.EntryStore).GetEntries(t.Context(), "a", arrayName,
						[]string{added.UUID})
					if err != nil {
						t.Error(err)
						return
					}
					err = s.Put(t.Context(), o.changing("a", r.Revision, r.Revision+1, added))
					if err == nil {
						break
					}
					if !errors.Is(err, errs.Mismatch) {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	group.Wait()
	r, _, err := stores[0].Get(t.Context(), "a")
	if err != nil || r.Revision != 1+2*changes {
		t.Fatalf("it is at %d, error %v", r.Revision, err)
	}
	for i := range stores {
		for n := range changes {
			if !bytes.Contains(r.Body, entryOf(fmt.Sprintf("new%d-%d", i, n), 100, n).Value) {
				t.Errorf("the change %d of %d is lost", n, i)
			}
		}
	}
	for _, b := range backends {
		closeBackend(t, b)
	}
	stores[0].clear()
	wantItems(t, server.URL, stores[0], "belfry_Books", "a", 0)
}
