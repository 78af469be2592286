package storetest

import (
	"fmt"
)

func purgeTests() []test {
	return []test{
		{"tombstones below a revision go", purgeBelow},
		{"a tombstone whose events wait stays", purgeSparesWaiting},
		{"at most limit go at once", purgeLimit},
		{"waiting tombstones don't stop others from going", purgePassesWaiting},
		{"live records stay", purgeSparesLive},
		{"a purged uuid is free", purgedIsFree},
	}
}

// purges asserts that purging comes to remove n tombstones in all.
func (s *shelf) purges(before uint64, limit, n int) {
	s.w.Helper()
	removed := 0
	s.w.eventually(func() error {
		got, err := s.Purge(s.w.ctx, before, limit)
		removed += got
		switch {
		case err != nil:
			return err
		case got > limit:
			return fmt.Errorf("%d tombstones were purged, at most %d were asked", got, limit)
		case removed != n:
			return fmt.Errorf("%d tombstones below %d were purged, want %d", removed, before, n)
		}
		return nil
	})
}

// deleted puts and deletes a record; the tombstone has the revision.
func (s *shelf) deleted(uuid string, revision uint64) {
	s.w.Helper()
	s.put(uuid, 0, revision-1, text(uuid))
	s.put(uuid, revision-1, revision, nil)
}

// clearAll clears n events that must come to wait.
func (s *shelf) clearAll(n int) {
	s.w.Helper()
	s.w.eventually(func() error {
		events, err := s.allPending(100)
		if err == nil && len(events) != n {
			err = fmt.Errorf("%d events wait, want %d", len(events), n)
		}
		if err == nil {
			err = s.Clear(s.w.ctx, events)
		}
		return err
	})
}

func purgeBelow(w *world) {
	s := w.open("Books")
	s.deleted("a", 10)
	s.deleted("b", 20)
	s.deleted("c", 30)
	s.clearAll(6)
	s.purges(10, 100, 0)
	s.purges(21, 100, 2)
	s.lacks("a")
	s.lacks("b")
	s.holds("c", 30, nil)
}

func purgeSparesWaiting(w *world) {
	s := w.open("Books")
	s.deleted("a", 10)
	s.purges(100, 100, 0)
	s.holds("a", 10, nil)
	s.waits("a/9", "a/10")
	w.must(s.Clear(w.ctx, s.pending()[1:]))
	s.waits("a/9")
	s.purges(100, 100, 0)
	s.holds("a", 10, nil)
	s.clearAll(1)
	s.purges(100, 100, 1)
	s.lacks("a")
}

func purgeLimit(w *world) {
	s := w.open("Books")
	for i := range uint64(10) {
		s.deleted(fmt.Sprint("n", i), 10+2*i)
	}
	s.clearAll(20)
	removed := 0
	w.eventually(func() error {
		n, err := s.Purge(w.ctx, 1000, 3)
		if n > 3 {
			w.Fatalf("%d tombstones were purged, at most 3 were asked", n)
		}
		if err == nil && n != 3 {
			err = fmt.Errorf("%d tombstones were purged, want 3", n)
		}
		removed += n
		return err
	})
	s.purges(1000, 100, 10-removed)
}

func purgePassesWaiting(w *world) {
	s := w.open("Books")
	for i := range uint64(5) {
		s.deleted(fmt.Sprint("old", i), 10+2*i)
	}
	s.deleted("new", 50)
	s.waitsInOrder("new", 2)
	for _, e := range s.pending() {
		if e.UUID == "new" {
			w.must(s.Clear(w.ctx, append(s.pending()[:0:0], e)))
		}
	}
	s.waitsInOrder("new", 0)
	s.purges(1000, 2, 1)
	s.lacks("new")
	s.holds("old0", 10, nil)
}

func purgeSparesLive(w *world) {
	s := w.open("Books")
	s.put("live", 0, 5, text("live"))
	s.deleted("again", 10)
	s.put("again", 0, 11, text("again"))
	s.clearAll(4)
	s.purges(1000, 100, 0)
	s.holds("live", 5, text("live"))
	s.holds("again", 11, text("again"))
}

func purgedIsFree(w *world) {
	s := w.open("Books")
	s.deleted("a", 10)
	s.clearAll(2)
	s.purges(11, 1, 1)
	s.refuses("a", 10, 12, text("no such revision"))
	s.put("a", 0, 12, text("new"))
	s.holds("a", 12, text("new"))
	s.waits("a/12")
	s.scans("a")
}
