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
	return []test{
		{"exactly one of concurrent creates succeeds", oneCreateSucceeds},
		{"concurrent updates of a record are not lost", noLostUpdate},
		{"reads are atomic", readsAreAtomic},
		{"no event is lost while others are cleared", noLostEvent},
		{"purging never removes a record that was created again", purgeDuringCreate},
		{"pages are complete while other records change their keys", pagesDuringUpdates},
		{"no write is lost, and no key is missing, while an index is built", buildDuringWrites},
		{"intersections are complete, and of one moment, while other records change their keys",
			intersectionsDuringUpdates},
		{"entries of a large array are of one revision while others change them", entriesDuringChanges},
	}
}

// concurrently calls act n times concurrently and fails with the errors.
func (f *fixture) concurrently(n int, act func(i int) error) {
	f.Helper()
	var group sync.WaitGroup
	failures := make([]error, n)
	for i := range n {
		group.Go(func() { failures[i] = act(i) })
	}
	group.Wait()
	if err := errors.Join(failures...); err != nil {
		f.Fatal(err)
	}
}

// times returns a number of operations, for long runs ten times as many.
func (f *fixture) times(n int) int {
	if f.long {
		n *= 10
	}
	return n
}

func oneCreateSucceeds(f *fixture) {
	s := f.open("Books", byColor)
	for round := range f.times(4) {
		uuid := fmt.Sprint("n", round)
		var succeeded atomic.Int64
		f.concurrently(12, func(i int) error {
			err := s.Put(f.ctx, s.write(uuid, 0, uint64(i+1), keyed("color", fmt.Sprint(i))))
			switch {
			case err == nil:
				succeeded.Add(int64(i + 1))
			case !errors.Is(err, errs.Mismatch):
				return err
			}
			return nil
		})
		// If two succeeded, the sum is not the revision of the record.
		revision := uint64(succeeded.Load()) //nolint:gosec // small
		s.wantRecord(uuid, revision, keyed("color", fmt.Sprint(revision-1)))
		s.wantPendingCount(uuid, 1)
		s.wantMatches(driver.Query{Index: "color", Equal: parts(fmt.Sprint(revision - 1))}, uuid)
		s.put(uuid, revision, 100, text("done"))
	}
}

// noLostUpdate has writers append to one record, each at the revision that it
// read: every revision is used once, and every append is in the body.
func noLostUpdate(f *fixture) {
	const writers = 5
	writes := f.times(6)
	s := f.open("Books", byColor)
	s.put("a", 0, 1, text(""))
	f.concurrently(writers, func(i int) error {
		for n := range writes {
			if err := s.appendTo("a", fmt.Sprintf("%d.%d ", i, n)); err != nil {
				return err
			}
		}
		return nil
	})
	record, _, err := s.Get(f.ctx, "a")
	f.must(err)
	if record.Revision != uint64(1+writers*writes) { //nolint:gosec // small
		f.Fatalf("the record is at revision %d after %d writes from revision 1", record.Revision, writers*writes)
	}
	for i := range writers {
		for n := range writes {
			if mark := fmt.Sprintf("%d.%d ", i, n); !strings.Contains(" "+string(record.Body), mark) {
				f.Fatalf("the update %q is lost", mark)
			}
		}
	}
	s.wantPendingCount("a", 1+writers*writes)
}

// appendTo appends a mark to the body of a record, retrying on Mismatch.
func (s *testStore) appendTo(uuid, mark string) error {
	for {
		record, ok, err := s.Get(s.f.ctx, uuid)
		if err != nil || !ok {
			return fmt.Errorf("get: found %v, error %w", ok, err)
		}
		write := driver.Write{
			UUID: uuid, IfRevision: record.Revision, Revision: record.Revision + 1,
			Body:  append(append([]byte(nil), record.Body...), mark...),
			Event: eventOf(uuid, record.Revision+1),
		}
		if err := s.Put(s.f.ctx, write); !errors.Is(err, errs.Mismatch) {
			return err
		}
	}
}

// readsAreAtomic has readers check that body and revision belong together and
// revisions never decrease, through updates, deletes and creates.
func readsAreAtomic(f *fixture) {
	last := uint64(f.times(30)) //nolint:gosec // small
	s := f.open("Books")
	s.put("a", 0, 1, text("1"))
	var done atomic.Bool
	f.concurrently(4, func(i int) error {
		if i > 0 {
			return s.readUntil("a", &done)
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
			if err := s.Put(f.ctx, write); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *testStore) readUntil(uuid string, done *atomic.Bool) error {
	latest := uint64(0)
	for !done.Load() {
		record, ok, err := s.Get(s.f.ctx, uuid)
		if err != nil || !ok {
			return fmt.Errorf("get of a record that always exists: found %v, error %w", ok, err)
		}
		want := driver.Record{UUID: uuid, Revision: record.Revision, Deleted: true}
		if record.Revision%5 != 0 {
			want.Body, want.Deleted = text(fmt.Sprint(record.Revision)).encode(), false
		}
		if err := checkRecord(record, want); err != nil {
			return err
		}
		if record.Revision < latest {
			return fmt.Errorf("get returned revision %d after %d", record.Revision, latest)
		}
		latest = record.Revision
	}
	return nil
}

// noLostEvent publishes while writers write: every event must be published, and
// none may be pending at the end.
func noLostEvent(f *fixture) {
	const writers = 4
	writes := f.times(14)
	s := f.open("Books")
	var writing atomic.Int64
	writing.Store(writers)
	var mu sync.Mutex
	published := make(map[string]bool)
	f.concurrently(writers+2, func(i int) error {
		if i < writers {
			defer writing.Add(-1)
			return s.writeMany(i, writes)
		}
		for {
			last := writing.Load() == 0
			events, err := s.publishAll()
			mu.Lock()
			for _, id := range events {
				published[id] = true
			}
			mu.Unlock()
			if err != nil || last && len(events) == 0 {
				return err
			}
		}
	})
	f.eventually(func() error {
		events, err := s.publishAll()
		for _, id := range events {
			published[id] = true
		}
		if err == nil && len(published) != writers*writes {
			err = fmt.Errorf("%d events were published, want %d", len(published), writers*writes)
		}
		return err
	})
	s.wantPending()
}

// writeMany creates, updates and deletes a record that only this writer changes.
func (s *testStore) writeMany(writer, n int) error {
	for i := range n {
		revision := uint64(i + 1)
		write := s.write(fmt.Sprint("w", writer), revision-1, revision, text("x"))
		switch i % 7 {
		case 6:
			write = s.write(write.UUID, revision-1, revision, nil)
		case 0:
			write.IfRevision = 0
		}
		if err := s.Put(s.f.ctx, write); err != nil {
			return err
		}
	}
	return nil
}

// publishAll clears all pending events, page by page, and returns their IDs.
func (s *testStore) publishAll() (list []string, err error) {
	var after []byte
	for {
		events, next, err := s.Pending(s.f.ctx, after, 10)
		if err != nil {
			return list, err
		}
		if err := s.Clear(s.f.ctx, events); err != nil {
			return list, err
		}
		list = append(list, ids(events)...)
		if next == nil {
			return list, nil
		}
		after = next
	}
}

// purgeDuringCreate purges while records are deleted and created again: live
// records must be kept.
func purgeDuringCreate(f *fixture) {
	s := f.open("Books")
	var writing atomic.Int64
	writing.Store(4)
	last := uint64(f.times(16)) //nolint:gosec // small
	f.concurrently(6, func(i int) error {
		if i >= 4 {
			for writing.Load() > 0 {
				if _, err := s.publishAll(); err != nil {
					return err
				}
				if _, err := s.Purge(f.ctx, 1<<62, 10); err != nil {
					return err
				}
			}
			return nil
		}
		defer writing.Add(-1)
		uuid := fmt.Sprint("n", i)
		for revision := uint64(1); revision < last; revision += 2 {
			if err := s.Put(f.ctx, s.write(uuid, 0, revision, text("x"))); err != nil {
				return err
			}
			record, ok, err := s.Get(f.ctx, uuid)
			if err != nil || !ok || record.Deleted || record.Revision != revision {
				return fmt.Errorf("get of a live record at %d: %s, found %v, error %w", revision, describe(record), ok,
					err)
			}
			if err := s.Put(f.ctx, s.write(uuid, revision, revision+1, nil)); err != nil {
				return err
			}
		}
		return nil
	})
}

// pagesDuringUpdates queries while a record changes its key: the others must be
// found each time.
func pagesDuringUpdates(f *fixture) {
	s := f.open("Books", byColor)
	var still []string
	for i := range 12 {
		uuid := fmt.Sprintf("still%02d", i)
		still = append(still, uuid)
		s.put(uuid, 0, 1, keyed("color", fmt.Sprintf("%02d", i)))
	}
	s.wantMatches(driver.Query{Index: "color"}, strings.Join(still, " "))
	var done atomic.Bool
	f.concurrently(3, func(i int) error {
		if i == 0 {
			defer done.Store(true)
			return s.move("moving", uint64(f.times(20))) //nolint:gosec // small
		}
		for !done.Load() {
			if err := s.checkStill(still, i+2); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *testStore) move(uuid string, times uint64) error {
	for revision := range times {
		d := keyed("color", fmt.Sprintf("%02d", revision*7%12))
		if err := s.Put(s.f.ctx, s.write(uuid, revision, revision+1, d)); err != nil {
			return err
		}
	}
	return nil
}

// checkStill checks that a query in pages finds the records that don't change,
// each once and in order.
func (s *testStore) checkStill(want []string, limit int) error {
	found, err := s.find(driver.Query{Index: "color", Limit: limit})
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
