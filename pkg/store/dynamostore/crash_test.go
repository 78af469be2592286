package dynamostore_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/dynamostore"
	"belfry/test/backing"
)

// eachProxied runs a test on each server behind a proxy. dynalite does not return the item of a
// failed condition.
func eachProxied(t *testing.T, test func(t *testing.T, g *proxy, s testStore)) {
	t.Parallel()
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			g := newProxy(t, start(t).URL)
			test(t, g, openStore(t, openBackend(t, options(g.url)), byColor))
		})
	}
}

// TestWriteWithLostReplyIsMadeOnce breaks the connection after the server has made a
// write: the write is made once and not mistaken for another's.
func TestWriteWithLostReplyIsMadeOnce(t *testing.T) {
	eachProxied(t, func(t *testing.T, g *proxy, s testStore) {
		lose := func(op string) { g.set(firstTimes(1, op, fault{cutReply: true})) }
		lose("PutItem")
		s.put(write("a", 0, 1, body("red")))
		s.wantRecord("a", 1, body("red"))
		s.wantPending("a/1")
		s.wantMatches("red", "a")
		lose("UpdateItem")
		s.put(write("a", 1, 2, body("blue")))
		s.wantRecord("a", 2, body("blue"))
		s.wantPending("a/1", "a/2")
		s.wantMatches("red")
		s.wantMatches("blue", "a")
		lose("UpdateItem")
		s.clear()
		s.wantPending()
		lose("UpdateItem")
		s.put(write("a", 2, 3, nil))
		s.wantRecord("a", 3, nil)
		lose("UpdateItem")
		s.put(write("a", 0, 4, body("green")))
		s.wantRecord("a", 4, body("green"))
		s.wantPending("a/3", "a/4")
		s.wantMatches("green", "a")

		lose("UpdateItem")
		wantKind(t, s.Put(t.Context(), write("a", 0, 5, body())), errs.Mismatch)
		lose("UpdateItem")
		wantKind(t, s.Put(t.Context(), write("a", 3, 5, body())), errs.Mismatch)
		s.wantRecord("a", 4, body("green"))
	})
}

// TestCreateOverAnothersTombstone creates objects that another process deleted, and loses
// replies meanwhile: the pending events of the deleted object stay.
func TestCreateOverAnothersTombstone(t *testing.T) {
	eachProxied(t, func(t *testing.T, g *proxy, s testStore) {
		other := openStore(t, openBackend(t, options(g.server)), byColor)
		for i, lost := range []string{"", "PutItem", "UpdateItem"} {
			uuid := fmt.Sprint("a", i)
			other.put(write(uuid, 0, 1, body("red")))
			other.put(write(uuid, 1, 5, nil))
			wantKind(t, s.Put(t.Context(), write(uuid, 0, 5, body("blue"))), errs.Mismatch)
			g.set(firstTimes(1, lost, fault{cutReply: true}))
			s.put(write(uuid, 0, 6, body("blue")))
			if ops := g.seen(); !slices.Contains(ops, "PutItem") || !slices.Contains(ops, "UpdateItem") {
				t.Errorf("it takes the requests %q; want a PutItem, and an UpdateItem over the tombstone", ops)
			}
			s.wantRecord(uuid, 6, body("blue"))
			s.wantPending(uuid+"/1", uuid+"/5", uuid+"/6")
			s.wantMatches("red")
			s.clear()
		}
		s.wantMatches("blue", "a0", "a1", "a2")

		other.put(write("b", 0, 1, body("red")))
		for _, lost := range []string{"", "PutItem"} {
			g.set(firstTimes(1, lost, fault{cutReply: true}))
			wantKind(t, s.Put(t.Context(), write("b", 0, 6, body("blue"))), errs.Mismatch)
		}
		s.wantRecord("b", 1, body("red"))
	})
}

// TestWriteWithoutAnyReplyIsUnavailable cuts every reply: the error says that the
// write may have been made.
func TestWriteWithoutAnyReplyIsUnavailable(t *testing.T) {
	t.Parallel()
	g, s := openThroughProxy(t)
	g.set(everyTime("PutItem", fault{cutReply: true}))
	wantKind(t, s.Put(t.Context(), write("a", 0, 1, body("red"))), errs.Unavailable)
	g.set(nil)
	s.wantRecord("a", 1, body("red"))
	s.wantPending("a/1")

	g.set(func(op, _ string) fault { return fault{cutReply: op == "UpdateItem", drop: op == "GetItem"} })
	wantKind(t, s.Put(t.Context(), write("a", 1, 2, body("blue"))), errs.Unavailable)
	g.set(nil)
	s.wantRecord("a", 2, body("blue"))
	s.wantPending("a/1", "a/2")
}

// TestLostReplyAndOthers has another process change or delete the object between a create
// and its second attempt: the create is recognized as made while its event is pending; after
// that it is not repeated and not reported as a conflict.
func TestLostReplyAndOthers(t *testing.T) {
	eachProxied(t, func(t *testing.T, g *proxy, s testStore) {
		other := openStore(t, openBackend(t, options(g.server)), byColor)
		for round, c := range []struct {
			then    []byte
			cleared bool
		}{{body("blue"), false}, {body("blue"), true}, {nil, false}, {nil, true}} {
			uuid := fmt.Sprint("a", round)
			change := func() {
				err := other.Put(t.Context(), write(uuid, 1, 2, c.then))
				if err == nil && c.cleared {
					err = other.Clear(t.Context(),
						[]driver.Pending{{UUID: uuid, Revision: 1}, {UUID: uuid, Revision: 2}})
				}
				if err != nil {
					t.Error(err)
				}
			}
			attempts := 0
			g.set(func(op, _ string) fault {
				if op == "PutItem" {
					attempts++
				}
				if op == "PutItem" && attempts == 2 {
					change()
				}
				return fault{cutReply: op == "PutItem" && attempts == 1}
			})
			err := s.Put(t.Context(), write(uuid, 0, 1, body("red")))
			if c.cleared {
				wantKind(t, err, errs.Unavailable)
			} else if err != nil {
				t.Error(err)
			}
			other.wantRecord(uuid, 2, c.then)
		}
	})
}

// TestMissingEntriesAreRepaired crashes the process between a record and its entries:
// they are written before Pending returns the event of the write, and before another
// write with these keys is acknowledged.
func TestMissingEntriesAreRepaired(t *testing.T) {
	t.Parallel()
	g, s := openThroughProxy(t)
	g.set(everyTime("BatchWriteItem", fault{drop: true}))
	for _, uuid := range []string{"a", "b", "c"} {
		wantKind(t, s.Put(t.Context(), write(uuid, 0, 1, body("red"))), errs.Unavailable)
	}
	silent := write("silent", 0, 1, body("red"))
	silent.Event = driver.Event{}
	wantKind(t, s.Put(t.Context(), silent), errs.Unavailable)
	g.set(nil)
	if _, found, err := s.Get(t.Context(), "silent"); found || err != nil {
		t.Errorf("a record exists whose entries no event repairs: found %v, error %v", found, err)
	}
	s.wantMatches("red")
	s.wantRecord("a", 1, body("red"))

	other := openStore(t, openBackend(t, options(g.server)), byColor)
	other.wantRecord("a", 1, body("red"))
	other.put(write("a", 1, 2, body("red", "blue")))
	other.wantMatches("red", "a")
	other.wantPending("a/1", "a/2", "b/1", "c/1")
	other.wantMatches("red", "a", "b", "c")
	page, err := other.Scan(t.Context(), nil, 10)
	if err != nil || len(page.Records) != 3 {
		t.Errorf("a scan returns %d records, error %v; want 3", len(page.Records), err)
	}
}

// TestOrphanEntriesAreRemovedAfterADay crashes the process between entries and their
// record: queries ignore them, keep them while they may belong to a write in progress,
// and remove them a day later.
func TestOrphanEntriesAreRemovedAfterADay(t *testing.T) {
	t.Parallel()
	g := newProxy(t, backing.Dynoxide(t).URL)
	b := openBackend(t, options(g.url))
	s := openStore(t, b, byColor)
	s.put(write("b", 0, 1, body("red")))
	g.set(func(op, _ string) fault { return fault{drop: op == "PutItem" || op == "UpdateItem"} })
	wantKind(t, s.Put(t.Context(), write("a", 0, 1, body("red"))), errs.Unavailable)
	wantKind(t, s.Put(t.Context(), write("b", 1, 2, body("blue"))), errs.Unavailable)
	g.set(nil)
	closeBackend(t, b)

	const withOrphans, without = "i:5 m:1 r:1", "i:2 m:1 r:1"
	check := func(days int, want string) {
		t.Helper()
		later, err := dynamostore.Open(t.Context(), options(g.server))
		if err != nil {
			t.Fatal(err)
		}
		dynamostore.SetClock(later, func() time.Time { return time.Now().Add(time.Duration(days) * 24 * time.Hour) })
		testStore := openStore(t, later, byColor)
		testStore.wantMatches("red", "b")
		testStore.wantMatches("blue")
		if page, err := testStore.Scan(t.Context(), nil, 10); err != nil || len(page.Records) != 1 {
			t.Errorf("a scan returns %d records, error %v; want 1", len(page.Records), err)
		}
		closeBackend(t, later)
		if got := contents(t, g.server, "belfry_Books"); got != want {
			t.Errorf("after %d days the table has %s, want %s", days, got, want)
		}
	}
	check(0, withOrphans)
	check(2, without)
}

// incompressible returns text that compresses to three quarters at best.
func incompressible(seed byte, size int) string {
	data := make([]byte, size*3/4)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(data) // never fails
	return base64.RawURLEncoding.EncodeToString(data)
}

// TestLargeObjectSurvivesACrashAtAnyStep crashes the process at each step of a write of
// a large object. The object is always complete, and a day later no garbage is left.
func TestLargeObjectSurvivesACrashAtAnyStep(t *testing.T) {
	t.Parallel()
	steps := map[string]func(op, body string) fault{
		"before the pieces": func(op, _ string) fault { return fault{drop: op == "BatchWriteItem"} },
		"before the record": func(op, _ string) fault { return fault{drop: op == "UpdateItem"} },
		"before the cleanup": func(op, body string) fault {
			return fault{drop: strings.Contains(body, "DeleteRequest")}
		},
		"after a lost reply": func(op, _ string) fault { return fault{cutReply: op == "UpdateItem"} },
		"no crash":           func(string, string) fault { return fault{} },
		"before clearing ends": func(op, body string) fault {
			return fault{drop: strings.Contains(body, "REMOVE #") && !strings.Contains(body, "size(q)")}
		},
	}
	server := backing.Dynoxide(t)
	round := 0
	for name, rule := range steps {
		round++
		t.Run(name, func(t *testing.T) {
			g := newProxy(t, server.URL)
			opts := options(g.url)
			opts.TablePrefix = fmt.Sprintf("pieces%d_", round)
			b := openBackend(t, opts)
			s := openStore(t, b, byColor)
			before, after := body("red", incompressible(1, 140<<10)), body("red", incompressible(2, 520<<10))
			first := write("a", 0, 1, before)
			first.Keys = first.Keys[:1]
			first.Event.Payload = []byte(incompressible(3, 100<<10))
			s.put(first)
			g.set(rule)
			next := write("a", 1, 2, after)
			next.Keys = next.Keys[:1]
			err := s.Put(t.Context(), next)
			if err == nil {
				_ = s.Clear(t.Context(), []driver.Pending{{UUID: "a", Revision: 1}, {UUID: "a", Revision: 2}})
			}
			closeBackend(t, b)
			g.set(nil)

			opts.Endpoint = server.URL
			later := openBackend(t, opts)
			dynamostore.SetClock(later, func() time.Time { return time.Now().Add(48 * time.Hour) })
			l := openStore(t, later, byColor)
			r, ok, getErr := l.Get(t.Context(), "a")
			if getErr != nil || !ok || r.Revision == 1 && string(r.Body) != string(before) ||
				r.Revision == 2 && string(r.Body) != string(after) {
				t.Fatalf("the object is at revision %d with %d bytes, found %v, error %v", r.Revision, len(r.Body), ok,
					getErr)
			}
			if err == nil && r.Revision != 2 {
				t.Fatal("an acknowledged write is lost")
			}
			l.clear()
			l.wantPending()
			if _, pending, err := l.Count(t.Context()); pending != 0 || err != nil {
				t.Errorf("%d objects count as having pending events, error %v; want none", pending, err)
			}
			l.wantMatches("red", "a")
			if _, err := l.Purge(t.Context(), 1, 1); err != nil {
				t.Fatal(err)
			}
			closeBackend(t, later)
			pieces := map[uint64]int{1: pieceCount(before), 2: pieceCount(after)}[r.Revision]
			if got, want := contents(t, server.URL, opts.TablePrefix+"Books"),
				fmt.Sprintf("c:%d i:2 m:1 r:1", pieces); got != want {
				t.Errorf("at revision %d the table has %s, want %s", r.Revision, got, want)
			}
		})
	}
}

// pieceCount returns the number of pieces of incompressible text.
func pieceCount(data []byte) int { return (len(data)*3/4 + 380<<10 - 1) / (380 << 10) }

// TestPurgeLeavesNothing deletes a large object with large events, and purges it.
func TestPurgeLeavesNothing(t *testing.T) {
	t.Parallel()
	server := backing.Dynoxide(t)
	b := openBackend(t, options(server.URL))
	s := openStore(t, b, byColor)
	w := write("a", 0, 1, []byte(incompressible(1, 520<<10)))
	w.Event.Payload = []byte(incompressible(2, 100<<10))
	s.put(w)
	w = write("a", 1, 2, nil)
	w.Event.Payload = w.Event.Payload[:1]
	s.put(w)
	if n, err := s.Purge(t.Context(), 100, 10); n != 0 || err != nil {
		t.Fatalf("%d tombstones with pending events were purged, error %v", n, err)
	}
	s.clear()
	if n, err := s.Purge(t.Context(), 100, 10); n != 1 || err != nil {
		t.Fatalf("%d tombstones were purged, error %v; want 1", n, err)
	}
	closeBackend(t, b)
	if got := contents(t, server.URL, "belfry_Books"); got != "m:1" {
		t.Errorf("the table has %s, want m:1", got)
	}
}

// TestABuildFindsWhatACrashLeft: a process that creates a record crashes before it has written the entry by which Scan
// finds it. An index that is built before the event is published has it all the same.
func TestABuildFindsWhatACrashLeft(t *testing.T) {
	t.Parallel()
	g := newProxy(t, backing.Dynoxide(t).URL)
	b := openBackend(t, options(g.url))
	former := openStore(t, b)
	g.set(everyTime("BatchWriteItem", fault{code: "AccessDeniedException"}))
	w := write("a", 0, 1, body("red"))
	w.Keys = nil
	wantKind(t, former.Put(t.Context(), w), errs.Internal)
	g.set(nil)
	spec := books(byColor)
	spec.Online = true
	s, err := b.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := driver.BuildIndexes(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	testStore{s, t}.wantMatches("red", "a")
	testStore{s, t}.wantPending("a/1")
}
