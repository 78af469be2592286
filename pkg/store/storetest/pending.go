package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

func pendingTests() []test {
	return []test{
		{"the event of a write is pending", eventIsPending},
		{"events of a record are in the order of their revisions", eventsInOrder},
		{"pages of any size are complete", eventPages},
		{"clearing removes the given events", clearRemoves},
		{"clearing does not change the record", clearLeavesRecord},
		{"clearing an event that is not pending does nothing", clearNothing},
		{"events below the revisions of cleared events are found", eventsBelowClearedRevisions},
		{"events of all incarnations of a record are pending", eventsAcrossIncarnations},
		{"an event is binary data", eventIsBinary},
		{"each of several events of a write has its own revision", severalEvents},
		{"the first revision of a write must be greater than the record's", firstRevisionIsAbove},
		{"a write may have no event", writeWithoutEvent},
	}
}

// allPending reads all pages.
func (s *testStore) allPending(limit int) (all []driver.Pending, err error) {
	for e, err := range driver.PendingEvents(s.f.ctx, limits{s}, limit) {
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// pending returns the pending events.
func (s *testStore) pending() []driver.Pending {
	s.f.Helper()
	events, err := s.allPending(100)
	s.f.must(err)
	return events
}

func ids(events []driver.Pending) []string {
	list := make([]string, len(events))
	for i, e := range events {
		list[i] = e.ID
	}
	return list
}

// wantPending asserts which events are pending, in any order, and that each is
// complete.
func (s *testStore) wantPending(want ...string) {
	s.f.Helper()
	slices.Sort(want)
	s.f.eventually(func() error {
		events, err := s.allPending(3)
		if err != nil {
			return err
		}
		got := ids(events)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("the events %q are pending, want %q", got, want)
		}
		for _, e := range events {
			if err := checkEvent(e); err != nil {
				return err
			}
		}
		return checkOrder(events)
	})
}

func checkEvent(got driver.Pending) error {
	want := eventOf(got.UUID, got.Revision)
	if got.ID != want.ID || got.Subject != want.Subject || !bytes.Equal(got.Payload, want.Payload) {
		return fmt.Errorf("the pending event of %s at %d is %+v, want %+v", got.UUID, got.Revision, got.Event, want)
	}
	return nil
}

// checkOrder checks that the events of each record are in the order of their
// revisions.
func checkOrder(events []driver.Pending) error {
	last := make(map[string]uint64)
	for _, e := range events {
		if e.Revision <= last[e.UUID] {
			return fmt.Errorf("the event of %s at %d follows the one at %d", e.UUID, e.Revision, last[e.UUID])
		}
		last[e.UUID] = e.Revision
	}
	return nil
}

// wantPendingCount asserts how many events of a record are pending.
func (s *testStore) wantPendingCount(uuid string, n int) {
	s.f.Helper()
	s.f.eventually(func() error {
		events, err := s.allPending(5)
		if err != nil {
			return err
		}
		events = slices.DeleteFunc(events, func(e driver.Pending) bool { return e.UUID != uuid })
		if len(events) != n {
			return fmt.Errorf("%d events of %s are pending (%q), want %d", len(events), uuid, ids(events), n)
		}
		return checkOrder(events)
	})
}

func eventIsPending(f *fixture) {
	s := f.open("Books")
	s.wantPending()
	s.put("a", 0, 1, text("one"))
	s.wantPending("a/1")
	s.put("b", 0, 2, text("two"))
	s.put("a", 1, 3, nil)
	s.wantPending("a/1", "b/2", "a/3")
}

func eventsInOrder(f *fixture) {
	s := f.open("Books")
	revisions := map[string]uint64{}
	for i := range uint64(30) {
		uuid := fmt.Sprint("n", i%3)
		next := revisions[uuid] + 1 + i*i*i%17
		s.put(uuid, revisions[uuid], next, text(fmt.Sprint(i)))
		revisions[uuid] = next
	}
	for uuid := range revisions {
		s.wantPendingCount(uuid, 10)
	}
}

func eventPages(f *fixture) {
	s := f.open("Books")
	var want []string
	for i := range 17 {
		uuid := fmt.Sprint("n", i)
		s.put(uuid, 0, uint64(100-i), text(uuid))
		want = append(want, eventOf(uuid, uint64(100-i)).ID)
	}
	slices.Sort(want)
	for _, limit := range []int{1, 3, 6, 16, 17, 18} {
		f.eventually(func() error {
			events, err := s.allPending(limit)
			got := ids(events)
			slices.Sort(got)
			if err == nil && !slices.Equal(got, want) {
				err = fmt.Errorf("pages of %d have %q, want %q", limit, got, want)
			}
			return err
		})
	}
}

func clearRemoves(f *fixture) {
	s := f.open("Books")
	s.put("a", 0, 1, text("one"))
	s.put("a", 1, 2, text("two"))
	s.put("a", 2, 3, text("three"))
	s.put("b", 0, 4, text("four"))
	f.must(s.Clear(f.ctx, []driver.Pending{{Event: eventOf("a", 2), UUID: "a", Revision: 2}}))
	s.wantPending("a/1", "a/3", "b/4")
	f.must(s.Clear(f.ctx, []driver.Pending{
		{Event: eventOf("a", 1), UUID: "a", Revision: 1},
		{Event: eventOf("b", 4), UUID: "b", Revision: 4},
	}))
	s.wantPending("a/3")
	s.put("a", 3, 5, nil)
	f.must(s.Clear(f.ctx, s.pending()))
	s.wantPending()
}

func clearLeavesRecord(f *fixture) {
	s := f.open("Books", byColor)
	s.put("a", 0, 1, keyed("color", "red"))
	s.put("b", 0, 2, text("two"))
	s.put("b", 2, 3, nil)
	s.wantPending("a/1", "b/2", "b/3")
	f.must(s.Clear(f.ctx, s.pending()))
	s.wantRecord("a", 1, keyed("color", "red"))
	s.wantRecord("b", 3, nil)
	s.wantMatches(driver.Query{Index: "color"}, "a")
	s.put("a", 1, 4, keyed("color", "blue"))
	s.put("b", 0, 5, text("again"))
	s.wantPending("a/4", "b/5")
}

func clearNothing(f *fixture) {
	s := f.open("Books")
	gone := driver.Pending{Event: eventOf("a", 1), UUID: "a", Revision: 1}
	f.must(s.Clear(f.ctx, nil))
	f.must(s.Clear(f.ctx, []driver.Pending{gone}))
	s.wantNone("a")
	s.put("a", 0, 1, text("one"))
	s.put("a", 1, 2, text("two"))
	f.must(s.Clear(f.ctx, []driver.Pending{gone, gone}))
	other := driver.Pending{Event: eventOf("a", 9), UUID: "a", Revision: 9}
	f.must(s.Clear(f.ctx, []driver.Pending{gone, other}))
	s.wantPending("a/2")
	f.must(s.Clear(f.ctx, []driver.Pending{other})) // as many as are pending
	s.wantPending("a/2")
}

// eventsBelowClearedRevisions detects a backend that remembers the lowest
// revision of a pending event wrongly: revisions of different records are not
// ordered.
func eventsBelowClearedRevisions(f *fixture) {
	s := f.open("Books")
	for round := range uint64(2) {
		high, low := 1000-200*round, 900-200*round
		a, b := fmt.Sprint("a", round), fmt.Sprint("b", round)
		s.put(a, 0, high, text("high"))
		s.wantPending(eventOf(a, high).ID)
		f.must(s.Clear(f.ctx, s.pending()))
		s.wantPending()
		s.put(b, 0, low, text("low"))
		s.wantPending(eventOf(b, low).ID)
		f.must(s.Clear(f.ctx, s.pending()))
		s.wantPending()
	}
}

func eventsAcrossIncarnations(f *fixture) {
	s := f.open("Books")
	s.put("a", 0, 1, text("one"))
	s.put("a", 1, 2, nil)
	s.put("a", 0, 3, text("two"))
	s.put("a", 3, 4, nil)
	s.wantPending("a/1", "a/2", "a/3", "a/4")
	f.must(s.Clear(f.ctx, s.pending()[:2]))
	s.wantPending("a/3", "a/4")
}

func eventIsBinary(f *fixture) {
	s := f.open("Books")
	payload := bytes.Repeat([]byte{0x00, 0xff, 0x01, 0x80}, 1000)
	id := strings.Repeat("i", 300)
	f.must(s.Put(f.ctx, driver.Write{UUID: "a", Revision: 1, Body: []byte("{}"),
		Event: driver.Event{ID: id, Subject: "s", Payload: payload}}))
	f.must(s.Put(f.ctx,
		driver.Write{UUID: "b", Revision: 2, Body: []byte("{}"),
			Event: driver.Event{ID: "empty payload", Subject: "s"}}))
	f.eventually(func() error {
		events, err := s.allPending(10)
		if err != nil || len(events) != 2 {
			return fmt.Errorf("%d events are pending, want 2; error %w", len(events), err)
		}
		for _, e := range events {
			if e.UUID == "a" && (e.ID != id || !bytes.Equal(e.Payload, payload)) ||
				e.UUID == "b" && len(e.Payload) != 0 {
				return fmt.Errorf("an event is %+v", e)
			}
		}
		return nil
	})
}

// writeWithExtraEvents returns a write of record a with n extra events.
func (s *testStore) writeWithExtraEvents(cond, revision uint64, d *doc, n int) driver.Write {
	write := s.write("a", cond, revision, d)
	write.Event = eventOf(write.UUID, revision-uint64(n))
	for i := range n {
		write.ExtraEvents = append(write.ExtraEvents, eventOf(write.UUID, revision-uint64(n-1-i)))
	}
	return write
}

func severalEvents(f *fixture) {
	s := f.open("things")
	f.must(s.Put(f.ctx, s.writeWithExtraEvents(0, 3, text("one"), 2)))
	s.wantRecord("a", 3, text("one"))
	s.wantPending("a/1", "a/2", "a/3")
	f.must(s.Clear(f.ctx, []driver.Pending{{Event: eventOf("a", 2), UUID: "a", Revision: 2}}))
	s.wantPending("a/1", "a/3")
	f.must(s.Put(f.ctx, s.writeWithExtraEvents(3, 5, nil, 1)))
	s.wantRecord("a", 5, nil)
	s.wantPending("a/1", "a/3", "a/4", "a/5")
	s.wantPendingCount("a", 4)
	f.must(s.Clear(f.ctx, s.pending()))
	s.wantPending()
}

func firstRevisionIsAbove(f *fixture) {
	s := f.open("things")
	s.put("a", 0, 5, text("one"))
	for _, extra := range []int{1, 2, 3} {
		f.wantKind(s.Put(f.ctx, s.writeWithExtraEvents(5, 6, text("two"), extra)), errs.Mismatch)
	}
	s.wantRecord("a", 5, text("one"))
	s.wantPending("a/5")
	f.must(s.Put(f.ctx, s.writeWithExtraEvents(5, 7, text("two"), 1)))
	s.wantRecord("a", 7, text("two"))
	s.wantPending("a/5", "a/6", "a/7")
}

func writeWithoutEvent(f *fixture) {
	s := f.open("things")
	silent := s.write("a", 0, 7, text("one"))
	silent.Event = driver.Event{}
	f.must(s.Put(f.ctx, silent))
	s.wantRecord("a", 7, text("one"))
	s.wantPending()
	s.put("a", 7, 8, text("two"))
	s.wantPending("a/8")
	silent = s.write("a", 8, 9, nil)
	silent.Event = driver.Event{}
	f.must(s.Put(f.ctx, silent))
	s.wantRecord("a", 9, nil)
	s.wantPending("a/8")
}
