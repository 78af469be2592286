package mongostore_test

import (
	"fmt"
	"sync"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/test/backing"
)

// TestConcurrentCreatesAreBatched: creates that come at once go together where one
// connection is all there is, and each gets its own outcome.
func TestConcurrentCreatesAreBatched(t *testing.T) {
	p := newProxy(t, backing.StartMongo(t).Address)
	s := openBooks(t, open(t, "mongodb://"+p.address+"/?maxPoolSize=1"))
	const n = 60
	for i := range n {
		switch uuid := fmt.Sprintf("a%02d", i); i % 3 {
		case 0: // is there
			must(t, s.Put(t.Context(), write(uuid, 0, 1, "old")))
		case 1: // was there
			must(t, s.Put(t.Context(), write(uuid, 0, 1, "old")))
			must(t, s.Put(t.Context(), write(uuid, 1, 2, "")))
		}
	}
	p.faults(nil)
	results := make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { results[i] = s.Put(t.Context(), write(fmt.Sprintf("a%02d", i), 0, 5, "new")) })
	}
	group.Wait()
	for i, err := range results {
		uuid := fmt.Sprintf("a%02d", i)
		if i%3 == 0 {
			wantKind(t, err, errs.Mismatch)
		} else if err != nil {
			t.Errorf("%s: %v", uuid, err)
		}
		if got := revisionOf(t, s, uuid); (got == 5) != (i%3 != 0) {
			t.Errorf("%s is at revision %d", uuid, got)
		}
	}
	if got := p.commands()["insert"]; got > n/2 {
		t.Errorf("%d creates at once took %d insertions", n, got)
	}
}

// TestRecordsWithoutEventsAreNotPending: records without events hide none that has some.
func TestRecordsWithoutEventsAreNotPending(t *testing.T) {
	_, s := throughProxy(t)
	for _, uuid := range []string{"a", "b", "c"} {
		w := write(uuid, 0, 1, "copy")
		w.Event = driver.Event{}
		must(t, s.Put(t.Context(), w))
		w = write(uuid, 1, 2, "copy again")
		w.Event = driver.Event{}
		must(t, s.Put(t.Context(), w))
	}
	must(t, s.Put(t.Context(), write("d", 0, 1, "one")))
	events, _, err := s.Pending(t.Context(), nil, 1)
	must(t, err)
	if len(events) != 1 || events[0].ID != "d/1" {
		t.Errorf("%v wait, want the event of d alone", events)
	}
}
