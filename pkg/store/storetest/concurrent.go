package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

func concurrentTests() []test {
	list := []test{
		{"one of many creators wins", oneCreatorWins},
		{"writers of one record lose no update", noLostUpdate},
		{"readers see whole states", readersSeeWhole},
		{"an event is never lost while others are cleared", eventsNotLost},
		{"purging never takes a record that came back", purgeAgainstCreate},
		{"pages hold together while records move", pagesWhileMoving},
	}
	for i := range list {
		run := list[i].run
		list[i].run = func(w *world) {
			if w.harness.Features.Concurrent {
				run(w)
			}
		}
	}
	return list
}

// together runs n functions at once and fails with their first error.
func (w *world) together(n int, act func(i int) error) {
	w.Helper()
	var group sync.WaitGroup
	failures := make([]error, n)
	for i := range n {
		group.Go(func() { failures[i] = act(i) })
	}
	group.Wait()
	if err := errors.Join(failures...); err != nil {
		w.Fatal(err)
	}
}

func oneCreatorWins(w *world) {
	s := w.open("Books", byColour)
	for round := range 10 {
		uuid := fmt.Sprint("n", round)
		var won atomic.Int64
		w.together(16, func(i int) error {
			err := s.Put(w.ctx, s.write(uuid, 0, uint64(i+1), keyed("colour", fmt.Sprint(i))))
			switch {
			case err == nil:
				won.Add(int64(i + 1))
			case !errors.Is(err, errs.Mismatch):
				return err
			}
			return nil
		})
		// Were there two winners, the sum would be no revision that is there.
		revision := uint64(won.Load()) //nolint:gosec // small
		s.holds(uuid, revision, keyed("colour", fmt.Sprint(revision-1)))
		s.waitsInOrder(uuid, 1)
		s.finds(driver.Query{Index: "colour", Equal: parts(fmt.Sprint(revision - 1))}, uuid)
		s.put(uuid, revision, 100, text("done"))
	}
}

// noLostUpdate lets writers append to one record, each under the revision it
// read: every revision is taken once, and every append is there.
func noLostUpdate(w *world) {
	const writers, writes = 8, 25
	s := w.open("Books", byColour)
	s.put("a", 0, 1, text(""))
	w.together(writers, func(i int) error {
		for n := range writes {
			if err := s.appendTo("a", fmt.Sprintf("%d.%d ", i, n)); err != nil {
				return err
			}
		}
		return nil
	})
	record, _, err := s.Get(w.ctx, "a")
	w.must(err)
	if record.Revision != 1+writers*writes {
		w.Fatalf("the record is at revision %d after %d writes from revision 1", record.Revision, writers*writes)
	}
	for i := range writers {
		for n := range writes {
			if mark := fmt.Sprintf("%d.%d ", i, n); !strings.Contains(" "+string(record.Body), mark) {
				w.Fatalf("the write %q is lost", mark)
			}
		}
	}
	s.waitsInOrder("a", 1+writers*writes)
}

// appendTo adds a mark to the body of a record, over and over until no one
// comes between.
func (s *shelf) appendTo(uuid, mark string) error {
	for {
		record, ok, err := s.Get(s.w.ctx, uuid)
		if err != nil || !ok {
			return fmt.Errorf("get: found %v, error %w", ok, err)
		}
		write := driver.Write{
			UUID: uuid, IfRevision: record.Revision, Revision: record.Revision + 1,
			Body:  append(append([]byte(nil), record.Body...), mark...),
			Event: eventOf(uuid, record.Revision+1),
		}
		if err := s.Put(s.w.ctx, write); !errors.Is(err, errs.Mismatch) {
			return err
		}
	}
}

// readersSeeWhole has readers check that body and revision belong together
// and never go back, through updates, deletions and new creations.
func readersSeeWhole(w *world) {
	const last = 300
	s := w.open("Books")
	s.put("a", 0, 1, text("1"))
	var done atomic.Bool
	w.together(5, func(i int) error {
		if i > 0 {
			return s.watch("a", &done)
		}
		defer done.Store(true)
		for revision := uint64(2); revision <= last; revision++ {
			write := s.write("a", revision-1, revision, text(fmt.Sprint(revision)))
			switch revision % 5 {
			case 0:
				write = s.write("a", revision-1, revision, nil)
			case 1:
				write.IfRevision = 0
			}
			if err := s.Put(w.ctx, write); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *shelf) watch(uuid string, done *atomic.Bool) error {
	seen := uint64(0)
	for !done.Load() {
		record, ok, err := s.Get(s.w.ctx, uuid)
		if err != nil || !ok {
			return fmt.Errorf("a record that was always there was got with found %v, error %w", ok, err)
		}
		want := driver.Record{UUID: uuid, Revision: record.Revision, Deleted: true}
		if record.Revision%5 != 0 {
			want.Body, want.Deleted = text(fmt.Sprint(record.Revision)).encode(), false
		}
		if err := sameRecord(record, want); err != nil {
			return err
		}
		if record.Revision < seen {
			return fmt.Errorf("revision %d was seen after %d", record.Revision, seen)
		}
		seen = record.Revision
	}
	return nil
}

// eventsNotLost relays while writers write: each event must come by, and none
// may be left in the end.
func eventsNotLost(w *world) {
	const writers, writes = 6, 60
	s := w.open("Books")
	var writing atomic.Int64
	writing.Store(writers)
	var mu sync.Mutex
	relayed := make(map[string]bool)
	w.together(writers+2, func(i int) error {
		if i < writers {
			defer writing.Add(-1)
			return s.writeMany(i, writes)
		}
		for {
			last := writing.Load() == 0
			events, err := s.relay()
			mu.Lock()
			for _, id := range events {
				relayed[id] = true
			}
			mu.Unlock()
			if err != nil || last && len(events) == 0 {
				return err
			}
		}
	})
	w.eventually(func() error {
		events, err := s.relay()
		for _, id := range events {
			relayed[id] = true
		}
		if err == nil && len(relayed) != writers*writes {
			err = fmt.Errorf("%d events came by, want %d", len(relayed), writers*writes)
		}
		return err
	})
	s.waits()
}

// writeMany creates, updates and deletes a record of a writer's own, and
// one that it shares the revisions' range with.
func (s *shelf) writeMany(writer, n int) error {
	for i := range n {
		revision := uint64(i + 1)
		write := s.write(fmt.Sprint("w", writer), revision-1, revision, text("x"))
		switch i % 7 {
		case 6:
			write = s.write(write.UUID, revision-1, revision, nil)
		case 0:
			write.IfRevision = 0
		}
		if err := s.Put(s.w.ctx, write); err != nil {
			return err
		}
	}
	return nil
}

// relay clears what waits, page by page, and returns the ids.
func (s *shelf) relay() (list []string, err error) {
	var after []byte
	for {
		events, next, err := s.Pending(s.w.ctx, after, 10)
		if err != nil {
			return list, err
		}
		if err := s.Clear(s.w.ctx, events); err != nil {
			return list, err
		}
		list = append(list, ids(events)...)
		if next == nil {
			return list, nil
		}
		after = next
	}
}

// purgeAgainstCreate purges while records are deleted and created again. A
// purged record may begin anew, a live one must stay.
func purgeAgainstCreate(w *world) {
	s := w.open("Books")
	var writing atomic.Int64
	writing.Store(4)
	w.together(6, func(i int) error {
		if i >= 4 {
			for writing.Load() > 0 {
				if _, err := s.relay(); err != nil {
					return err
				}
				if _, err := s.Purge(w.ctx, 1<<62, 10); err != nil {
					return err
				}
			}
			return nil
		}
		defer writing.Add(-1)
		uuid := fmt.Sprint("n", i)
		for revision := uint64(1); revision < 80; revision += 2 {
			if err := s.Put(w.ctx, s.write(uuid, 0, revision, text("x"))); err != nil {
				return err
			}
			record, ok, err := s.Get(w.ctx, uuid)
			if err != nil || !ok || record.Deleted || record.Revision != revision {
				return fmt.Errorf("a live record at %d was got as %s, found %v, error %w", revision, show(record), ok, err)
			}
			if err := s.Put(w.ctx, s.write(uuid, revision, revision+1, nil)); err != nil {
				return err
			}
		}
		return nil
	})
}

// pagesWhileMoving queries while records change their key: those that don't
// must be found each time.
func pagesWhileMoving(w *world) {
	s := w.open("Books", byColour)
	var still []string
	for i := range 20 {
		uuid := fmt.Sprintf("still%02d", i)
		still = append(still, uuid)
		s.put(uuid, 0, 1, keyed("colour", fmt.Sprintf("%02d", i)))
	}
	s.finds(driver.Query{Index: "colour"}, strings.Join(still, " "))
	var done atomic.Bool
	w.together(3, func(i int) error {
		if i == 0 {
			defer done.Store(true)
			return s.move("moving", 150)
		}
		for !done.Load() {
			if err := s.findsStill(still, i+2); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *shelf) move(uuid string, times uint64) error {
	for revision := range times {
		d := keyed("colour", fmt.Sprintf("%02d", revision*7%20))
		if err := s.Put(s.w.ctx, s.write(uuid, revision, revision+1, d)); err != nil {
			return err
		}
	}
	return nil
}

// findsStill checks that a query in pages finds the records that don't move,
// each once and in order.
func (s *shelf) findsStill(want []string, limit int) error {
	found, err := s.find(driver.Query{Index: "colour", Limit: limit})
	if err != nil {
		return err
	}
	var got []string
	for _, record := range found {
		if record.UUID != "moving" {
			got = append(got, record.UUID)
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		return fmt.Errorf("found %q, want %q", got, want)
	}
	return nil
}
