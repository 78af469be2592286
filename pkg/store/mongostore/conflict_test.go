package mongostore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/mongostore"
	"belfry/test/backing"
	"belfry/test/kit"
)

// deadlock is the reply of DocumentDB to a write that a deadlock ended: 40P01 as a code.
var deadlock = fault{answer: bson.D{
	{Key: "ok", Value: 1}, {Key: "n", Value: 0},
	{Key: "writeErrors", Value: bson.A{bson.D{
		{Key: "index", Value: 0}, {Key: "code", Value: 16908292}, {Key: "errmsg", Value: "deadlock detected"},
	}}},
}}

// refuses answers commands with an error of the server.
func refuses(code int, message string) fault {
	return fault{answer: bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: code}, {Key: "errmsg", Value: message}}}
}

// TestDeadlocksAreRetried: a write that the server rolled back because of others is made, and is
// Unavailable if it is rolled back again and again.
func TestDeadlocksAreRetried(t *testing.T) {
	t.Parallel()
	p, s := throughProxy(t)
	for _, c := range []struct {
		name, command string
		act           func() error
	}{
		{"create", "insert", func() error { return s.Put(t.Context(), write("a", 0, 1, "one")) }},
		{"update", "update", func() error { return s.Put(t.Context(), write("a", 1, 2, "two")) }},
		{"clear one of several", "update", func() error { return s.Clear(t.Context(), events("a", 1)) }},
		{"clear", "update", func() error { return s.Clear(t.Context(), events("a", 2)) }},
		{"delete", "update", func() error { return s.Put(t.Context(), write("a", 2, 3, "")) }},
		{"clear a tombstone", "update", func() error { return s.Clear(t.Context(), events("a", 3)) }},
		{"purge", "delete", func() error { _, err := s.Purge(t.Context(), 10, 10); return err }},
	} {
		for name, f := range map[string]fault{"of a write": deadlock, "of a command": refuses(112, "WriteConflict"),
			"in a text": refuses(1, "deadlock detected")} {
			p.first(1000, c.command, f)
			if e := wantKind(t, c.act(), errs.Unavailable); e.RetryAfter <= 0 ||
				!strings.Contains(e.Message, "concurrent") {
				t.Errorf("%s, %s: the error %v doesn't say why, or when to try again", c.name, name, e)
			}
		}
		p.first(2, c.command, deadlock)
		if err := c.act(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if got := waiting(t, s); got != "" || revisionOf(t, s, "a") != 0 {
		t.Errorf("the events %q and revision %d are left", got, revisionOf(t, s, "a"))
	}
}

// TestAfterADeadlockEventsAreClearedRecordByRecord: an update of one record waits for one lock, so
// two processes that clear the same events can't wait for each other any more.
func TestAfterADeadlockEventsAreClearedRecordByRecord(t *testing.T) {
	p, s := throughProxy(t)
	var all []driver.Pending
	for i := range 5 {
		uuid := fmt.Sprint("n", i)
		must(t, s.Put(t.Context(), write(uuid, 0, 1, "one")))
		all = append(all, events(uuid, 1)...)
	}
	p.first(1, "update", deadlock)
	must(t, s.Clear(t.Context(), all))
	if n := p.commands()["update"]; n != 6 {
		t.Errorf("%d updates were sent, want one for all and one for each", n)
	}
	if got := waiting(t, s); got != "" {
		t.Errorf("the events %q wait", got)
	}
}

// TestADeadlockOfABatchIsNoMismatch: when the server reports a conflict for a whole batch, some of it
// may have been inserted. A retry would take these for somebody else's.
func TestADeadlockOfABatchIsNoMismatch(t *testing.T) {
	p, s := throughProxy(t)
	writes := []driver.Write{write("b", 0, 1, "one"), write("a", 0, 1, "one")}
	p.first(1, "insert", refuses(112, "WriteConflict"))
	for _, err := range mongostore.InsertTogether(t.Context(), s, writes...) {
		if wantKind(t, err, errs.Unavailable); mongostore.RolledBack(err) {
			t.Errorf("a create is repeated after %v", err)
		}
	}
	// Each document has the error that the server reports for it.
	must(t, s.Put(t.Context(), write("a", 0, 1, "one")))
	results := mongostore.InsertTogether(t.Context(), s, write("c", 0, 1, "one"), write("a", 0, 1, "one"),
		write("b", 0, 1, "one"))
	if results[0] != nil || results[1] == nil || results[2] != nil {
		t.Errorf("the results are %v, want that the second exists", results)
	}
}

// TestOpenOfAFailingServerIsUnavailable: a store of a server that starts, stops, or works at
// the same indexes for another process can be opened later.
func TestOpenOfAFailingServerIsUnavailable(t *testing.T) {
	t.Parallel()
	p := newProxy(t, backing.StartMongo(t).Address)
	b := open(t, "mongodb://"+p.address)
	for _, command := range []string{"listCollections", "listIndexes", "createIndexes"} {
		for name, f := range map[string]fault{
			"starting": refuses(1, "the database system is starting up"),
			"building": refuses(12587, "cannot perform operation: an index build is currently running"),
		} {
			p.first(1000, command, f)
			_, err := b.Open(t.Context(), books())
			if e := wantKind(t, err, errs.Unavailable); e.RetryAfter <= 0 {
				t.Errorf("%s, %s: the error %v doesn't say when to try again", command, name, e)
			}
		}
	}
	p.faults(nil)
	openBooks(t, b)
	// Another process has dropped the index in the meantime.
	p.first(1, "dropIndexes", refuses(27, "index not found with name"))
	_, err := b.Open(t.Context(), driver.Spec{Name: "Books"})
	must(t, err)
	if n := p.commands()["dropIndexes"]; n != 1 {
		t.Errorf("%d indexes were dropped, want one", n)
	}
}

// TestAPostgresThatRestartsBelowTheServerIsUnavailable: the server's connections work, and it has its own words for
// what PostgreSQL does.
func TestAPostgresThatRestartsBelowTheServerIsUnavailable(t *testing.T) {
	t.Parallel()
	postgres := backing.StartPostgres(t)
	server := backing.MongoOnPostgres(t, postgres)
	s := openBooks(t, open(t, server.URL))
	must(t, s.Put(t.Context(), write("a", 0, 1, "one")))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	wrote := make(chan uint64, 1000)
	go func() { ended <- writeThrough(ctx, s, wrote) }() // in the middle of requests
	<-wrote
	postgres.Stop()
	for name, act := range map[string]func() error{
		"Get":   func() error { _, _, err := s.Get(t.Context(), "a"); return err },
		"Put":   func() error { return s.Put(t.Context(), write("b", 0, 1, "one")) },
		"Query": func() error { _, err := s.Query(t.Context(), queryTag("one")); return err },
		"Clear": func() error { return s.Clear(t.Context(), events("a", 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			if e := wantKind(t, act(), errs.Unavailable); e.RetryAfter <= 0 {
				t.Errorf("the error %v doesn't say when to try again", e)
			}
		})
	}
	postgres.Restart(t)
	kit.WaitUntil(t, func() error { _, _, err := s.Get(t.Context(), "a"); return err })
	for len(wrote) > 0 {
		<-wrote
	}
	last := <-wrote
	cancel()
	must(t, <-ended)
	if got := revisionOf(t, s, "a"); got < last {
		t.Errorf("the record is at revision %d, but %d was acknowledged", got, last)
	}
}

// writeThrough updates a record until its context ends. Every error in between is Unavailable.
func writeThrough(ctx context.Context, s driver.Store, wrote chan<- uint64) error {
	for revision := uint64(1); ctx.Err() == nil; {
		err := s.Put(ctx, write("a", revision, revision+1, "x"))
		switch {
		case err == nil:
			revision++
			select {
			case wrote <- revision:
			default:
			}
		case ctx.Err() == nil && !errors.Is(err, errs.Unavailable):
			return err
		}
		for err != nil && ctx.Err() == nil {
			var record driver.Record
			if record, _, err = s.Get(ctx, "a"); err == nil {
				revision = record.Revision
			}
		}
	}
	return nil
}
