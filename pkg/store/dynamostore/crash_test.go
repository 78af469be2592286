package dynamostore_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/dynamostore"
	"belfry/test/backing"
	"belfry/test/kit"
)

// TestLostReplies cuts the connection after the server has made a write: the
// write is made once, and is not taken for someone else's.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	g, s := gated(t)
	lose := func() { g.set(times(1, "UpdateItem", fate{cut: true})) }
	lose()
	s.put(write("a", 0, 1, body("red")))
	lose()
	s.put(write("a", 1, 2, body("blue")))
	s.holds("a", 2, body("blue"))
	s.waits("a/1", "a/2")
	s.finds("red")
	s.finds("blue", "a")
	lose()
	s.clear()
	s.waits()
	lose()
	s.put(write("a", 2, 3, nil))
	s.holds("a", 3, nil)
	lose()
	s.put(write("a", 0, 4, body("green")))
	s.holds("a", 4, body("green"))
	s.waits("a/3", "a/4")
	s.finds("green", "a")

	lose()
	wantKind(t, s.Put(t.Context(), write("a", 0, 5, body())), errs.Mismatch)
	lose()
	wantKind(t, s.Put(t.Context(), write("a", 3, 5, body())), errs.Mismatch)
	s.holds("a", 4, body("green"))
}

// TestNoReplyAtAll cuts every reply: the error says that the write may have
// been made.
func TestNoReplyAtAll(t *testing.T) {
	t.Parallel()
	g, s := gated(t)
	g.set(always("UpdateItem", fate{cut: true}))
	wantKind(t, s.Put(t.Context(), write("a", 0, 1, body("red"))), errs.Unavailable)
	g.set(nil)
	s.holds("a", 1, body("red"))
	s.waits("a/1")

	g.set(func(op, _ string) fate { return fate{cut: op == "UpdateItem", lost: op == "GetItem"} })
	wantKind(t, s.Put(t.Context(), write("a", 1, 2, body("blue"))), errs.Unavailable)
	g.set(nil)
	s.holds("a", 2, body("blue"))
	s.waits("a/1", "a/2")
}

// TestLostReplyAndOthers has another process change the object between a write
// and its second attempt: that it was made can be told as long as its event
// waits, and after that it is not denied.
func TestLostReplyAndOthers(t *testing.T) {
	t.Parallel()
	g, s := gated(t)
	other := openStore(t, openBackend(t, options(g.server)), byColour)
	for round, cleared := range []bool{false, true} {
		uuid := fmt.Sprint("a", round)
		first := true
		g.set(func(op, _ string) fate {
			if op != "UpdateItem" || !first {
				return fate{}
			}
			first = false
			return fate{cut: true}
		})
		done := make(chan error)
		go func() { done <- s.Put(t.Context(), write(uuid, 0, 1, body("red"))) }()
		kit.WaitUntil(t, func() error { return other.Put(t.Context(), write(uuid, 1, 2, body("blue"))) })
		if cleared {
			other.clear()
		}
		err := <-done
		if cleared && err != nil {
			wantKind(t, err, errs.Unavailable)
		} else if err != nil {
			t.Error(err)
		}
		other.holds(uuid, 2, body("blue"))
	}
}

// TestEntriesLost has the process die between a record and its entries: they
// are there before anyone gets the event of the write, and when another write
// that has these keys is acknowledged.
func TestEntriesLost(t *testing.T) {
	t.Parallel()
	g, s := gated(t)
	g.set(always("BatchWriteItem", fate{lost: true}))
	for _, uuid := range []string{"a", "b", "c"} {
		wantKind(t, s.Put(t.Context(), write(uuid, 0, 1, body("red"))), errs.Unavailable)
	}
	silent := write("silent", 0, 1, body("red"))
	silent.Event = driver.Event{}
	wantKind(t, s.Put(t.Context(), silent), errs.Unavailable)
	g.set(nil)
	if _, found, err := s.Get(t.Context(), "silent"); found || err != nil {
		t.Errorf("a record is there whose entries no event brings: found %v, error %v", found, err)
	}
	s.finds("red")
	s.holds("a", 1, body("red"))

	other := openStore(t, openBackend(t, options(g.server)), byColour)
	other.holds("a", 1, body("red"))
	other.put(write("a", 1, 2, body("red", "blue")))
	other.finds("red", "a")
	other.waits("a/1", "a/2", "b/1", "c/1")
	other.finds("red", "a", "b", "c")
	page, err := other.Scan(t.Context(), nil, 10)
	if err != nil || len(page.Records) != 3 {
		t.Errorf("a scan sees %d records, error %v; want 3", len(page.Records), err)
	}
}

// TestRecordLost has the process die between entries and their record: they
// count for nothing, stay while they may belong to a write under way, and are
// removed by whoever comes upon them a day later.
func TestRecordLost(t *testing.T) {
	t.Parallel()
	g := newGate(t, backing.Dynoxide(t).URL)
	b := openBackend(t, options(g.url))
	s := openStore(t, b, byColour)
	s.put(write("b", 0, 1, body("red")))
	g.set(always("UpdateItem", fate{lost: true}))
	wantKind(t, s.Put(t.Context(), write("a", 0, 1, body("red"))), errs.Unavailable)
	wantKind(t, s.Put(t.Context(), write("b", 1, 2, body("blue"))), errs.Unavailable)
	g.set(nil)
	closeBackend(t, b)

	const withLeftovers, without = "i:5 m:1 r:1", "i:2 m:1 r:1"
	look := func(days int, want string) {
		t.Helper()
		later, err := dynamostore.Open(t.Context(), options(g.server))
		if err != nil {
			t.Fatal(err)
		}
		dynamostore.SetClock(later, func() time.Time { return time.Now().Add(time.Duration(days) * 24 * time.Hour) })
		shop := openStore(t, later, byColour)
		shop.finds("red", "b")
		shop.finds("blue")
		if page, err := shop.Scan(t.Context(), nil, 10); err != nil || len(page.Records) != 1 {
			t.Errorf("a scan sees %d records, error %v; want 1", len(page.Records), err)
		}
		closeBackend(t, later)
		if got := contents(t, g.server, "belfry_Books"); got != want {
			t.Errorf("after %d days the table holds %s, want %s", days, got, want)
		}
	}
	look(0, withLeftovers)
	look(2, without)
}

// noise is text that can be packed to three quarters, and no further.
func noise(seed byte, size int) string {
	data := make([]byte, size*3/4)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(data) // never fails
	return base64.RawURLEncoding.EncodeToString(data)
}

// TestPiecesLost has the process die at each step of a write of a large
// object. The object is whole all the time, and a day later nothing is left of
// what was in vain.
func TestPiecesLost(t *testing.T) {
	t.Parallel()
	steps := map[string]func(op, body string) fate{
		"before the pieces":  func(op, _ string) fate { return fate{lost: op == "BatchWriteItem"} },
		"before the record":  func(op, _ string) fate { return fate{lost: op == "UpdateItem"} },
		"before the tidying": func(op, body string) fate { return fate{lost: strings.Contains(body, "DeleteRequest")} },
		"after a lost reply": func(op, _ string) fate { return fate{cut: op == "UpdateItem"} },
		"nowhere":            func(string, string) fate { return fate{} },
		"before clearing ends": func(op, body string) fate {
			return fate{lost: strings.Contains(body, "REMOVE #") && !strings.Contains(body, "size(q)")}
		},
	}
	server := backing.Dynoxide(t)
	round := 0
	for name, rule := range steps {
		round++
		t.Run(name, func(t *testing.T) {
			g := newGate(t, server.URL)
			opts := options(g.url)
			opts.TablePrefix = fmt.Sprintf("pieces%d_", round)
			b := openBackend(t, opts)
			s := openStore(t, b, byColour)
			before, after := body("red", noise(1, 500<<10)), body("red", noise(2, 700<<10))
			first := write("a", 0, 1, before)
			first.Keys = first.Keys[:1]
			first.Event.Payload = []byte(noise(3, 256<<10))
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
			l := openStore(t, later, byColour)
			r, ok, getErr := l.Get(t.Context(), "a")
			if getErr != nil || !ok || r.Revision == 1 && string(r.Body) != string(before) || r.Revision == 2 && string(r.Body) != string(after) {
				t.Fatalf("the object is at revision %d with %d bytes, found %v, error %v", r.Revision, len(r.Body), ok, getErr)
			}
			if err == nil && r.Revision != 2 {
				t.Fatal("an acknowledged write is lost")
			}
			l.clear()
			l.waits()
			if _, pending, err := l.Count(t.Context()); pending != 0 || err != nil {
				t.Errorf("%d objects count as having events that wait, error %v; want none", pending, err)
			}
			l.finds("red", "a")
			if _, err := l.Purge(t.Context(), 1, 1); err != nil {
				t.Fatal(err)
			}
			closeBackend(t, later)
			pieces := map[uint64]int{1: pieceCount(before), 2: pieceCount(after)}[r.Revision]
			if got, want := contents(t, server.URL, opts.TablePrefix+"Books"), fmt.Sprintf("c:%d i:2 m:1 r:1", pieces); got != want {
				t.Errorf("at revision %d the table holds %s, want %s", r.Revision, got, want)
			}
		})
	}
}

// pieceCount is how many pieces hold noise.
func pieceCount(data []byte) int { return (len(data)*3/4 + 380<<10 - 1) / (380 << 10) }

// TestTombstoneLeavesNothing deletes a large object with large events, and
// purges it.
func TestTombstoneLeavesNothing(t *testing.T) {
	t.Parallel()
	server := backing.Dynoxide(t)
	b := openBackend(t, options(server.URL))
	s := openStore(t, b, byColour)
	w := write("a", 0, 1, []byte(noise(1, 1<<20)))
	w.Event.Payload = []byte(noise(2, 256<<10))
	s.put(w)
	w = write("a", 1, 2, nil)
	w.Event.Payload = w.Event.Payload[:1]
	s.put(w)
	if n, err := s.Purge(t.Context(), 100, 10); n != 0 || err != nil {
		t.Fatalf("%d tombstones with waiting events were purged, error %v", n, err)
	}
	s.clear()
	if n, err := s.Purge(t.Context(), 100, 10); n != 1 || err != nil {
		t.Fatalf("%d tombstones were purged, error %v; want 1", n, err)
	}
	closeBackend(t, b)
	if got := contents(t, server.URL, "belfry_Books"); got != "m:1" {
		t.Errorf("the table holds %s, want m:1", got)
	}
}
