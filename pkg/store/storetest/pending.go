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
		{"the event of a write waits with it", eventWaits},
		{"events of one record come in the order of its revisions", eventsInOrder},
		{"pages of any size make up the whole", eventPages},
		{"clearing takes out what it names", clearTakesOut},
		{"clearing leaves the record alone", clearLeavesRecord},
		{"clearing what is not there does nothing", clearNothing},
		{"events appear again below those that were cleared", eventsBelowCleared},
		{"events of a deleted and created record go on", eventsAcrossLives},
		{"an event is any bytes", eventIsAnyBytes},
		{"a write tells several events, each at a revision of its own", severalEvents},
		{"the first revision of a write must be above the record's", firstRevisionIsAbove},
		{"a write may tell nobody", silentWrite},
	}
}

// allPending reads all pages.
func (s *shelf) allPending(limit int) ([]driver.Pending, error) {
	var all []driver.Pending
	var after []byte
	for {
		events, next, err := s.Pending(s.w.ctx, after, limit)
		if err != nil {
			return nil, err
		}
		if len(events) > limit {
			return nil, fmt.Errorf("%d events, at most %d were asked", len(events), limit)
		}
		all = append(all, events...)
		if next == nil {
			return all, nil
		}
		after = next
	}
}

// pending returns the events that wait now.
func (s *shelf) pending() []driver.Pending {
	s.w.Helper()
	events, err := s.allPending(100)
	s.w.must(err)
	return events
}

func ids(events []driver.Pending) []string {
	list := make([]string, len(events))
	for i, e := range events {
		list[i] = e.ID
	}
	return list
}

// waits asserts which events come to wait, in any order, each whole.
func (s *shelf) waits(want ...string) {
	s.w.Helper()
	slices.Sort(want)
	s.w.eventually(func() error {
		events, err := s.allPending(3)
		if err != nil {
			return err
		}
		got := ids(events)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("events %q wait, want %q", got, want)
		}
		for _, e := range events {
			if err := wholeEvent(e); err != nil {
				return err
			}
		}
		return inOrder(events)
	})
}

func wholeEvent(got driver.Pending) error {
	want := eventOf(got.UUID, got.Revision)
	if got.ID != want.ID || got.Subject != want.Subject || !bytes.Equal(got.Payload, want.Payload) {
		return fmt.Errorf("of %s at %d waits %+v, want %+v", got.UUID, got.Revision, got.Event, want)
	}
	return nil
}

// inOrder checks that the events of each record are in the order of revisions.
func inOrder(events []driver.Pending) error {
	last := make(map[string]uint64)
	for _, e := range events {
		if e.Revision <= last[e.UUID] {
			return fmt.Errorf("the event of %s at %d comes behind that at %d", e.UUID, e.Revision, last[e.UUID])
		}
		last[e.UUID] = e.Revision
	}
	return nil
}

// waitsInOrder asserts how many events of one record wait.
func (s *shelf) waitsInOrder(uuid string, n int) {
	s.w.Helper()
	s.w.eventually(func() error {
		events, err := s.allPending(5)
		if err != nil {
			return err
		}
		events = slices.DeleteFunc(events, func(e driver.Pending) bool { return e.UUID != uuid })
		if len(events) != n {
			return fmt.Errorf("%d events of %s wait (%q), want %d", len(events), uuid, ids(events), n)
		}
		return inOrder(events)
	})
}

func eventWaits(w *world) {
	s := w.open("Books")
	s.waits()
	s.put("a", 0, 1, text("one"))
	s.waits("a/1")
	s.put("b", 0, 2, text("two"))
	s.put("a", 1, 3, nil)
	s.waits("a/1", "b/2", "a/3")
}

func eventsInOrder(w *world) {
	s := w.open("Books")
	revisions := map[string]uint64{}
	for i := range uint64(60) {
		uuid := fmt.Sprint("n", i%3)
		next := revisions[uuid] + 1 + i*i*i%17
		s.put(uuid, revisions[uuid], next, text(fmt.Sprint(i)))
		revisions[uuid] = next
	}
	for uuid := range revisions {
		s.waitsInOrder(uuid, 20)
	}
}

func eventPages(w *world) {
	s := w.open("Books")
	var want []string
	for i := range 23 {
		uuid := fmt.Sprint("n", i)
		s.put(uuid, 0, uint64(100-i), text(uuid))
		want = append(want, eventOf(uuid, uint64(100-i)).ID)
	}
	slices.Sort(want)
	for limit := 1; limit < 30; limit += 4 {
		w.eventually(func() error {
			events, err := s.allPending(limit)
			got := ids(events)
			slices.Sort(got)
			if err == nil && !slices.Equal(got, want) {
				err = fmt.Errorf("pages of %d gave %q, want %q", limit, got, want)
			}
			return err
		})
	}
}

func clearTakesOut(w *world) {
	s := w.open("Books")
	s.put("a", 0, 1, text("one"))
	s.put("a", 1, 2, text("two"))
	s.put("a", 2, 3, text("three"))
	s.put("b", 0, 4, text("four"))
	w.must(s.Clear(w.ctx, []driver.Pending{{Event: eventOf("a", 2), UUID: "a", Revision: 2}}))
	s.waits("a/1", "a/3", "b/4")
	w.must(s.Clear(w.ctx, []driver.Pending{
		{Event: eventOf("a", 1), UUID: "a", Revision: 1},
		{Event: eventOf("b", 4), UUID: "b", Revision: 4},
	}))
	s.waits("a/3")
	s.put("a", 3, 5, nil)
	w.must(s.Clear(w.ctx, s.pending()))
	s.waits()
}

func clearLeavesRecord(w *world) {
	s := w.open("Books", byColour)
	s.put("a", 0, 1, keyed("colour", "red"))
	s.put("b", 0, 2, text("two"))
	s.put("b", 2, 3, nil)
	s.waits("a/1", "b/2", "b/3")
	w.must(s.Clear(w.ctx, s.pending()))
	s.holds("a", 1, keyed("colour", "red"))
	s.holds("b", 3, nil)
	s.finds(driver.Query{Index: "colour"}, "a")
	s.put("a", 1, 4, keyed("colour", "blue"))
	s.put("b", 0, 5, text("again"))
	s.waits("a/4", "b/5")
}

func clearNothing(w *world) {
	s := w.open("Books")
	gone := driver.Pending{Event: eventOf("a", 1), UUID: "a", Revision: 1}
	w.must(s.Clear(w.ctx, nil))
	w.must(s.Clear(w.ctx, []driver.Pending{gone}))
	s.lacks("a")
	s.put("a", 0, 1, text("one"))
	s.put("a", 1, 2, text("two"))
	w.must(s.Clear(w.ctx, []driver.Pending{gone, gone}))
	w.must(s.Clear(w.ctx, []driver.Pending{gone, {Event: eventOf("a", 9), UUID: "a", Revision: 9}}))
	s.waits("a/2")
}

// eventsBelowCleared catches a backend that remembers from where on events
// wait: revisions of different records come in no order.
func eventsBelowCleared(w *world) {
	s := w.open("Books")
	for round := range uint64(4) {
		high, low := 1000-200*round, 900-200*round
		a, b := fmt.Sprint("a", round), fmt.Sprint("b", round)
		s.put(a, 0, high, text("high"))
		s.waits(eventOf(a, high).ID)
		w.must(s.Clear(w.ctx, s.pending()))
		s.waits()
		s.put(b, 0, low, text("low"))
		s.waits(eventOf(b, low).ID)
		w.must(s.Clear(w.ctx, s.pending()))
		s.waits()
	}
}

func eventsAcrossLives(w *world) {
	s := w.open("Books")
	s.put("a", 0, 1, text("one"))
	s.put("a", 1, 2, nil)
	s.put("a", 0, 3, text("two"))
	s.put("a", 3, 4, nil)
	s.waits("a/1", "a/2", "a/3", "a/4")
	w.must(s.Clear(w.ctx, s.pending()[:2]))
	s.waits("a/3", "a/4")
}

func eventIsAnyBytes(w *world) {
	s := w.open("Books")
	payload := bytes.Repeat([]byte{0x00, 0xff, 0x01, 0x80}, 1000)
	id := strings.Repeat("i", 300)
	w.must(s.Put(w.ctx, driver.Write{UUID: "a", Revision: 1, Body: []byte("{}"), Event: driver.Event{ID: id, Subject: "s", Payload: payload}}))
	w.must(s.Put(w.ctx, driver.Write{UUID: "b", Revision: 2, Body: []byte("{}"), Event: driver.Event{ID: "empty payload", Subject: "s"}}))
	w.eventually(func() error {
		events, err := s.allPending(10)
		if err != nil || len(events) != 2 {
			return fmt.Errorf("%d events wait, want 2; error %w", len(events), err)
		}
		for _, e := range events {
			if e.UUID == "a" && (e.ID != id || !bytes.Equal(e.Payload, payload)) || e.UUID == "b" && len(e.Payload) != 0 {
				return fmt.Errorf("an event changed to %+v", e)
			}
		}
		return nil
	})
}

// telling makes a write that also tells n further events.
func (s *shelf) telling(cond, revision uint64, d *doc, n int) driver.Write {
	w := s.write("a", cond, revision, d)
	w.Event = eventOf(w.UUID, revision-uint64(n))
	for i := range n {
		w.ExtraEvents = append(w.ExtraEvents, eventOf(w.UUID, revision-uint64(n-1-i)))
	}
	return w
}

func severalEvents(w *world) {
	s := w.open("things")
	w.must(s.Put(w.ctx, s.telling(0, 3, text("one"), 2)))
	s.holds("a", 3, text("one"))
	s.waits("a/1", "a/2", "a/3")
	w.must(s.Clear(w.ctx, []driver.Pending{{Event: eventOf("a", 2), UUID: "a", Revision: 2}}))
	s.waits("a/1", "a/3")
	w.must(s.Put(w.ctx, s.telling(3, 5, nil, 1)))
	s.holds("a", 5, nil)
	s.waits("a/1", "a/3", "a/4", "a/5")
	s.waitsInOrder("a", 4)
	w.must(s.Clear(w.ctx, s.pending()))
	s.waits()
}

func firstRevisionIsAbove(w *world) {
	s := w.open("things")
	s.put("a", 0, 5, text("one"))
	for _, also := range []int{1, 2, 3} {
		w.wantKind(s.Put(w.ctx, s.telling(5, 6, text("two"), also)), errs.Mismatch)
	}
	s.holds("a", 5, text("one"))
	s.waits("a/5")
	w.must(s.Put(w.ctx, s.telling(5, 7, text("two"), 1)))
	s.holds("a", 7, text("two"))
	s.waits("a/5", "a/6", "a/7")
}

func silentWrite(w *world) {
	s := w.open("things")
	silent := s.write("a", 0, 7, text("one"))
	silent.Event = driver.Event{}
	w.must(s.Put(w.ctx, silent))
	s.holds("a", 7, text("one"))
	s.waits()
	s.put("a", 7, 8, text("two"))
	s.waits("a/8")
	silent = s.write("a", 8, 9, nil)
	silent.Event = driver.Event{}
	w.must(s.Put(w.ctx, silent))
	s.holds("a", 9, nil)
	s.waits("a/8")
}
