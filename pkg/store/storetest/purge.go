package storetest

import "fmt"

func purgeTests() []test {
	return []test{
		{"tombstones below a revision are removed", purgeBelow},
		{"a tombstone with a pending event is kept", purgeKeepsPending},
		{"at most limit tombstones are removed", purgeLimit},
		{"tombstones with pending events don't block others", purgeSkipsPending},
		{"live records are kept", purgeKeepsLive},
		{"a purged UUID can be used again", purgedUUIDIsFree},
	}
}

// wantPurged asserts that n tombstones in all can be purged.
func (s *testStore) wantPurged(before uint64, limit, n int) {
	s.f.Helper()
	removed := 0
	s.f.eventually(func() error {
		got, err := s.Purge(s.f.ctx, before, limit)
		removed += got
		switch {
		case err != nil:
			return err
		case got > limit:
			return fmt.Errorf("%d tombstones were purged, the limit is %d", got, limit)
		case removed != n:
			return fmt.Errorf("%d tombstones below %d were purged, want %d", removed, before, n)
		}
		return nil
	})
}

// putDeleted puts and deletes a record; revision is that of the tombstone.
func (s *testStore) putDeleted(uuid string, revision uint64) {
	s.f.Helper()
	s.put(uuid, 0, revision-1, text(uuid))
	s.put(uuid, revision-1, revision, nil)
}

// clearAll waits until n events are pending and clears them.
func (s *testStore) clearAll(n int) {
	s.f.Helper()
	s.f.eventually(func() error {
		events, err := s.allPending(100)
		if err == nil && len(events) != n {
			err = fmt.Errorf("%d events are pending, want %d", len(events), n)
		}
		if err == nil {
			err = s.Clear(s.f.ctx, events)
		}
		return err
	})
}

func purgeBelow(f *fixture) {
	s := f.open("Books")
	s.putDeleted("a", 10)
	s.putDeleted("b", 20)
	s.putDeleted("c", 30)
	s.clearAll(6)
	s.wantPurged(10, 100, 0)
	s.wantPurged(21, 100, 2)
	s.wantNone("a")
	s.wantNone("b")
	s.wantRecord("c", 30, nil)
}

func purgeKeepsPending(f *fixture) {
	s := f.open("Books")
	s.putDeleted("a", 10)
	s.wantPurged(100, 100, 0)
	s.wantRecord("a", 10, nil)
	s.wantPending("a/9", "a/10")
	f.must(s.Clear(f.ctx, s.pending()[1:]))
	s.wantPending("a/9")
	s.wantPurged(100, 100, 0)
	s.wantRecord("a", 10, nil)
	s.clearAll(1)
	s.wantPurged(100, 100, 1)
	s.wantNone("a")
}

func purgeLimit(f *fixture) {
	s := f.open("Books")
	for i := range uint64(10) {
		s.putDeleted(fmt.Sprint("n", i), 10+2*i)
	}
	s.clearAll(20)
	removed := 0
	f.eventually(func() error {
		n, err := s.Purge(f.ctx, 1000, 3)
		if n > 3 {
			f.Fatalf("%d tombstones were purged, the limit is 3", n)
		}
		if err == nil && n != 3 {
			err = fmt.Errorf("%d tombstones were purged, want 3", n)
		}
		removed += n
		return err
	})
	s.wantPurged(1000, 100, 10-removed)
}

func purgeSkipsPending(f *fixture) {
	s := f.open("Books")
	for i := range uint64(5) {
		s.putDeleted(fmt.Sprint("old", i), 10+2*i)
	}
	s.putDeleted("new", 50)
	s.wantPendingCount("new", 2)
	for _, e := range s.pending() {
		if e.UUID == "new" {
			f.must(s.Clear(f.ctx, append(s.pending()[:0:0], e)))
		}
	}
	s.wantPendingCount("new", 0)
	s.wantPurged(1000, 2, 1)
	s.wantNone("new")
	s.wantRecord("old0", 10, nil)
}

func purgeKeepsLive(f *fixture) {
	s := f.open("Books")
	s.put("live", 0, 5, text("live"))
	s.putDeleted("again", 10)
	s.put("again", 0, 11, text("again"))
	s.clearAll(4)
	s.wantPurged(1000, 100, 0)
	s.wantRecord("live", 5, text("live"))
	s.wantRecord("again", 11, text("again"))
}

func purgedUUIDIsFree(f *fixture) {
	s := f.open("Books")
	s.putDeleted("a", 10)
	s.clearAll(2)
	s.wantPurged(11, 1, 1)
	s.wantMismatch("a", 10, 12, text("no such revision"))
	s.put("a", 0, 12, text("new"))
	s.wantRecord("a", 12, text("new"))
	s.wantPending("a/12")
	s.wantScan("a")
}
