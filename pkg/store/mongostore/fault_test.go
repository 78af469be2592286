package mongostore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/mongostore"
	"belfry/test/backing"
	"belfry/test/kit"
)

// secret is in bodies and must be in no error.
const secret = "5ecret"

func open(t *testing.T, url string) *mongostore.Backend {
	t.Helper()
	b, err := mongostore.Open(t.Context(), mongostore.Options{URL: url, Database: "belfry"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

var byTag = driver.Index{Name: "tag", Parts: 1, Multi: true}

// books are a store in which a body is its record's only key.
func books() driver.Spec {
	return driver.Spec{Name: "Books", Indexes: []driver.Index{byTag}, Keys: keys}
}

func keys(body []byte) []driver.Key {
	return []driver.Key{{Index: byTag.Name, Parts: [][]byte{body}}}
}

// queryTag finds the records with a tag.
func queryTag(tag string) driver.Query {
	return driver.Query{Index: byTag.Name, Equal: [][]byte{[]byte(tag)}, Limit: 500}
}

// openBooks opens a store. A backend with little patience may need some tries.
func openBooks(t *testing.T, b *mongostore.Backend) (s driver.Store) {
	t.Helper()
	kit.WaitUntil(t, func() (err error) { s, err = b.Open(t.Context(), books()); return err })
	return s
}

// throughProxy opens a store whose server is reached through a proxy.
func throughProxy(t *testing.T) (*proxy, driver.Store) {
	t.Helper()
	p := newProxy(t, backing.StartMongo(t).Address)
	return p, openBooks(t, open(t, "mongodb://"+p.address+"/"))
}

func write(uuid string, cond, revision uint64, body string) driver.Write {
	w := driver.Write{
		UUID: uuid, IfRevision: cond, Revision: revision,
		Event: driver.Event{ID: fmt.Sprintf("%s/%d", uuid, revision), Subject: "s", Payload: []byte(secret)},
	}
	if body != "" {
		w.Body = []byte(body)
		w.Keys = keys(w.Body)
	}
	return w
}

// events are those of writes, as they are given to Clear.
func events(uuid string, revisions ...uint64) []driver.Pending {
	list := make([]driver.Pending, len(revisions))
	for i, revision := range revisions {
		list[i] = driver.Pending{Event: write(uuid, 0, revision, "").Event, UUID: uuid, Revision: revision}
	}
	return list
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantKind(t *testing.T, err error, kind errs.Kind) *errs.Error {
	t.Helper()
	var e *errs.Error
	if (err == nil || errs.KindOf(err) != kind) || !errors.As(err, &e) {
		t.Fatalf("got the error %v, want one of kind %q", err, kind)
	}
	if strings.Contains(err.Error(), secret) {
		t.Fatalf("the error %q contains a secret", err)
	}
	return e
}

// waiting are the ids of the events that wait.
func waiting(t *testing.T, s driver.Store) string {
	t.Helper()
	events, _, err := s.Pending(t.Context(), nil, 1000)
	must(t, err)
	var list []string
	for _, e := range events {
		list = append(list, e.ID)
	}
	return strings.Join(list, " ")
}

func revisionOf(t *testing.T, s driver.Store, uuid string) uint64 {
	t.Helper()
	record, _, err := s.Get(t.Context(), uuid)
	must(t, err)
	return record.Revision
}

// TestBackendReconnects: a backend can be opened without its server. Errors name the server
// that is unavailable, and the backend connects once it has started.
func TestBackendReconnects(t *testing.T) {
	server := backing.StartMongo(t)
	server.Kill()
	b := open(t, "mongodb://"+server.Address+"/?serverSelectionTimeoutMS=100")
	_, err := b.Open(t.Context(), books())
	for _, err := range []error{err, b.Ping(t.Context())} {
		if e := wantKind(t, err, errs.Unavailable); !strings.Contains(e.Message, server.Address) {
			t.Errorf("the message %q doesn't name the server", e.Message)
		}
	}
	server.Restart(t)
	kit.WaitUntil(t, func() error { return b.Ping(t.Context()) })
	must(t, openBooks(t, b).Put(t.Context(), write("a", 0, 1, "one")))
}

// TestAcknowledgedWritesSurviveAKilledServer kills the server under writers, each with a record of its own.
// What was acknowledged is there afterwards, and its event; no write
// without a concurrent one is reported as a conflict.
func TestAcknowledgedWritesSurviveAKilledServer(t *testing.T) {
	const writers, kills = 4, 3
	server := backing.StartMongo(t)
	s := openBooks(t, open(t, server.URL+"?serverSelectionTimeoutMS=200"))
	var stop atomic.Bool
	done := make(chan error, writers)
	acknowledged := make(chan struct{}, 1000)
	for i := range writers {
		go func() { done <- writeUntil(t.Context(), &stop, s, fmt.Sprint("w", i), acknowledged) }()
	}
	for range kills {
		for range 20 {
			<-acknowledged
		}
		server.Kill()
		server.Restart(t)
	}
	for range 20 {
		<-acknowledged
	}
	stop.Store(true)
	for range writers {
		must(t, <-done)
	}
	events := waiting(t, s)
	for i := range writers {
		uuid := fmt.Sprint("w", i)
		for revision := range revisionOf(t, s, uuid) {
			if id := fmt.Sprintf("%s/%d", uuid, revision+1); !strings.Contains(" "+events+" ", " "+id+" ") {
				t.Errorf("the event %s is lost", id)
			}
		}
	}
}

// writeUntil updates a record until stop is set. It reads the record whenever it does not
// know whether a write was made.
func writeUntil(ctx context.Context, stop *atomic.Bool, s driver.Store, uuid string,
	acknowledged chan<- struct{}) error {
	for revision := uint64(0); !stop.Load(); {
		err := s.Put(ctx, write(uuid, revision, revision+1, "x"))
		if err == nil {
			revision++
			select {
			case acknowledged <- struct{}{}:
			default:
			}
			continue
		}
		for errors.Is(err, errs.Unavailable) {
			var record driver.Record
			if record, _, err = s.Get(ctx, uuid); err == nil && record.Revision != revision &&
				record.Revision != revision+1 {
				err = fmt.Errorf("it is at revision %d, neither %d nor the next", record.Revision, revision)
			}
			revision = max(revision, record.Revision)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", uuid, err)
		}
	}
	return nil
}

// TestWriteWithLostReplyIsMadeOnce: a write whose reply is lost has an unknown outcome, never one
// that someone else's would have, and is made once.
func TestWriteWithLostReplyIsMadeOnce(t *testing.T) {
	p, s := throughProxy(t)
	for i, w := range []driver.Write{write("a", 0, 1, "one"), write("a", 1, 2, "two"), write("a", 2, 3, ""),
		write("a", 0, 4, "again")} {
		command := "update"
		if i == 0 {
			command = "insert"
		}
		p.first(1, command, fault{lost: true})
		wantKind(t, s.Put(t.Context(), w), errs.Unavailable)
		if got := revisionOf(t, s, "a"); got != w.Revision {
			t.Fatalf("write %d: the record is at revision %d, want %d", i, got, w.Revision)
		}
		wantKind(t, s.Put(t.Context(), w), errs.Mismatch)
	}
	if got := waiting(t, s); got != "a/1 a/2 a/3 a/4" {
		t.Errorf("the events %q wait, want one for each write", got)
	}
}

// TestBrokenConnectionsAreReplaced: a connection that breaks while it is idle makes at most one write
// fail for each that was open, and no read.
func TestBrokenConnectionsAreReplaced(t *testing.T) {
	p, s := throughProxy(t)
	must(t, s.Put(t.Context(), write("a", 0, 1, "one")))
	p.cut()
	if got := revisionOf(t, s, "a"); got != 1 {
		t.Fatalf("the record is at revision %d, want 1", got)
	}
	p.cut()
	if err := s.Put(t.Context(), write("a", 1, 2, "two")); err != nil {
		wantKind(t, err, errs.Unavailable)
		must(t, s.Put(t.Context(), write("a", 1, 2, "two")))
	}
}

// TestUnresponsiveServerTimesOut: a call to a server that does not respond ends with its context,
// or with the timeout of the backend.
func TestUnresponsiveServerTimesOut(t *testing.T) {
	p, s := throughProxy(t)
	hasty := openHasty(t, p.address)
	must(t, s.Put(t.Context(), write("a", 0, 1, "one")))
	p.faults(func(command string) fault { return fault{held: command == "update" || command == "find"} })
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	wantKind(t, s.Put(ctx, write("a", 1, 2, "two")), errs.Canceled)
	_, _, err := s.Get(ctx, "a")
	wantKind(t, err, errs.Canceled)
	wantKind(t, hasty.Put(t.Context(), write("a", 1, 2, "two")), errs.Unavailable)
	_, _, err = hasty.Get(t.Context(), "a")
	wantKind(t, err, errs.Unavailable)
	p.faults(nil)
	must(t, s.Put(t.Context(), write("a", 1, 2, "two")))
	kit.WaitUntil(t, func() error { _, _, err := hasty.Get(t.Context(), "a"); return err })
}

// openHasty opens the store with a timeout that is short, and as long as a busy machine needs to open it.
func openHasty(t *testing.T, address string) driver.Store {
	t.Helper()
	for timeout := 2 * time.Second; ; timeout *= 2 {
		s, err := open(t, fmt.Sprintf("mongodb://%s/?timeoutMS=%d", address, timeout.Milliseconds())).Open(t.Context(),
			books())
		if err == nil {
			return s
		}
		if errs.KindOf(err) != errs.Unavailable || timeout > kit.Limit {
			t.Fatal(err)
		}
	}
}

// TestThrottlingIsRetried: a request to an overloaded server is retried a few times.
func TestThrottlingIsRetried(t *testing.T) {
	p, s := throughProxy(t)
	busy := fault{answer: bson.D{
		{Key: "ok", Value: 0}, {Key: "code", Value: 462}, {Key: "codeName", Value: "IngressRequestRateLimitExceeded"},
		{Key: "errmsg", Value: "busy"}, {Key: "errorLabels", Value: bson.A{"SystemOverloadedError", "RetryableError"}},
	}}
	p.first(1, "insert", busy)
	must(t, s.Put(t.Context(), write("a", 0, 1, "one")))
	p.first(1, "find", busy)
	if got := revisionOf(t, s, "a"); got != 1 {
		t.Fatalf("the record is at revision %d, want 1", got)
	}
	p.first(1000, "update", busy)
	if e := wantKind(t, s.Put(t.Context(), write("a", 1, 2, "two")), errs.Unavailable); e.RetryAfter <= 0 {
		t.Errorf("the error %v doesn't say when to try again", e)
	}
	if n := p.commands()["update"]; n < 2 || n > 10 {
		t.Errorf("%d attempts were made, want a few", n)
	}
	if got := revisionOf(t, s, "a"); got != 1 {
		t.Errorf("the record is at revision %d, want 1", got)
	}
}

// TestMissingPermissionIsNamed: the error of a missing permission says what it is needed for.
// The server's own message contains the whole command.
func TestMissingPermissionIsNamed(t *testing.T) {
	p := newProxy(t, backing.StartMongo(t).Address)
	b := open(t, "mongodb://"+p.address)
	denied := fault{answer: bson.D{
		{Key: "ok", Value: 0}, {Key: "code", Value: 13}, {Key: "codeName", Value: "Unauthorized"},
		{Key: "errmsg", Value: "not authorized on belfry to execute command { body: " + secret + " }"},
	}}
	var s driver.Store
	acts := []struct {
		command string
		act     func() error
	}{
		{"createIndexes", func() (err error) { s, err = b.Open(t.Context(), books()); return err }},
		{"listCollections", func() (err error) { s, err = b.Open(t.Context(), books()); return err }},
		{"listIndexes", func() (err error) { s, err = b.Open(t.Context(), books()); return err }},
		{"insert", func() error { return s.Put(t.Context(), write("a", 0, 1, "one")) }},
		{"find", func() error { _, _, err := s.Get(t.Context(), "a"); return err }},
		{"find", func() error { _, err := s.Query(t.Context(), queryTag("one")); return err }},
		{"aggregate", func() error { _, _, err := s.Count(t.Context()); return err }},
		{"update", func() error { return s.Clear(t.Context(), []driver.Pending{{UUID: "a", Revision: 1}}) }},
		{"update", func() error { return s.Put(t.Context(), write("a", 1, 2, "")) }},
		{"update", func() error { return s.Clear(t.Context(), []driver.Pending{{UUID: "a", Revision: 2}}) }},
		{"delete", func() error { _, err := s.Purge(t.Context(), 10, 1); return err }},
		{"count", func() error { _, _, err := s.Count(t.Context()); return err }},
	}
	for _, a := range acts {
		p.first(1000, a.command, denied)
		if e := wantKind(t, a.act(), errs.Internal); !strings.Contains(e.Message, "readWrite") ||
			!strings.Contains(e.Message, "Books") {
			t.Errorf("without the right to %s: the message %q says nothing of rights or the collection", a.command,
				e.Message)
		}
		p.faults(nil)
		must(t, a.act())
	}
}

// TestTooLargeWritesAreRefused: what can't be kept is refused, with a kind that says whether
// it ever can be.
func TestTooLargeWritesAreRefused(t *testing.T) {
	p, s := throughProxy(t)
	must(t, s.Put(t.Context(), write("a", 0, 1, "one")))
	p.faults(nil)
	wantKind(t, s.Put(t.Context(), write("b", 0, 1, strings.Repeat("x", 16<<20))), errs.TooLarge)
	// Its key takes three times as much.
	wantKind(t, s.Put(t.Context(), write("b", 0, 1, strings.Repeat("\x00", 6<<20))), errs.TooLarge)
	if n := len(p.commands()); n != 0 {
		t.Errorf("%d commands were sent for what is too large in any case", n)
	}
	p.first(1, "update", fault{answer: bson.D{
		{Key: "ok", Value: 1}, {Key: "n", Value: 0},
		{Key: "writeErrors", Value: bson.A{bson.D{
			{Key: "index", Value: 0}, {Key: "code", Value: 17419},
			{Key: "errmsg", Value: "Resulting document after update is larger than 16777216"},
		}}},
	}})
	if e := wantKind(t, s.Put(t.Context(), write("a", 1, 2, "two")), errs.Unavailable); !strings.Contains(e.Message,
		"too many pending events") {
		t.Errorf("the message %q doesn't say why", e.Message)
	}
}

// TestRoundTrips counts what each act costs.
func TestRoundTrips(t *testing.T) {
	p, s := throughProxy(t)
	for _, c := range []struct {
		name string
		act  func() error
		want string
	}{
		// are there indexes that it does not write?
		{"create first", func() error { return s.Put(t.Context(), write("first", 0, 1, "one")) },
			"map[find:1 insert:1 listIndexes:1]"},
		{"create", func() error { return s.Put(t.Context(), write("a", 0, 1, "one")) }, "map[insert:1]"},
		{"get", func() error { _, _, err := s.Get(t.Context(), "a"); return err }, "map[find:1]"},
		{"update", func() error { return s.Put(t.Context(), write("a", 1, 2, "two")) }, "map[update:1]"},
		{"query", func() error {
			_, err := s.Query(t.Context(), queryTag("two"))
			return err
		}, "map[find:1]"},
		{"pending", func() error { _, _, err := s.Pending(t.Context(), nil, 500); return err }, "map[find:1]"},
		{"clear", func() error {
			return s.Clear(t.Context(), events("a", 1, 2))
		}, "map[update:1]"},
		{"create again", func() error { return s.Put(t.Context(), write("a", 0, 3, "three")) }, "map[find:1 insert:1]"},
		{"clear one of several", func() error {
			if err := s.Put(t.Context(), write("a", 2, 3, "three")); err != nil {
				return err
			}
			if err := s.Put(t.Context(), write("a", 3, 4, "four")); err != nil {
				return err
			}
			p.faults(nil)
			return s.Clear(t.Context(), events("a", 3))
		}, "map[find:1 update:2]"},
		{"delete", func() error { return s.Put(t.Context(), write("a", 4, 5, "")) }, "map[update:1]"},
		{"create over a tombstone", func() error { return s.Put(t.Context(), write("a", 0, 6, "six")) },
			"map[find:1 insert:1 update:1]"},
	} {
		p.faults(nil)
		if err := c.act(); err != nil && c.name != "create again" {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := fmt.Sprint(p.commands()); got != c.want {
			t.Errorf("%s cost %s, want %s", c.name, got, c.want)
		}
	}
}
