package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// buildContinues ends the process after each number of steps. The next one opens the store with or without the index,
// and builds it: from the beginning, since nobody knows how far the build was.
func buildContinues(f *fixture) {
	crash := func() {
		f.Helper()
		if f.harness.Features.Reopen {
			f.reopen()
		}
	}
	for after := range 7 {
		name := fmt.Sprint("Books", after)
		s := f.open(name, byColor)
		for i := range 10 {
			s.put(fmt.Sprintf("n%03d", i), 0, uint64(i+1), keyed("color", "red").and("tag", "x"))
		}
		var builds []driver.Build
		steps := []func(){
			func() { s = f.openOnline(name, byColor, byTag) },
			func() { builds = s.wantBuilding("tag") },
			func() { s.put("n000", 1, 20, keyed("color", "red").and("tag", "y")) },
			func() { f.must(s.Reindex(f.ctx, strings.Fields(numbered(0, 5, 1)))) },
			func() { f.must(s.Reindex(f.ctx, strings.Fields(numbered(5, 10, 1)))) },
			func() { f.must(s.Complete(f.ctx, builds)) },
		}
		for _, step := range steps[:min(after, len(steps))] {
			step()
		}
		crash()
		s = f.openOnline(name, byColor, byTag)
		if after < len(steps) {
			if again := s.wantBuilding("tag"); after > 1 && !slices.Equal(again, builds) {
				f.Errorf("after %d steps the build is %v, and was %v", after, again, builds)
			}
		}
		s.build()
		if after < 3 {
			s.wantMatches(driver.Query{Index: "tag", Equal: parts("x")}, numbered(0, 10, 1))
		} else {
			s.wantMatches(driver.Query{Index: "tag", Equal: parts("x")}, numbered(1, 10, 1))
		}
		crash()
		s = f.openOnline(name, byColor, byTag)
		s.wantBuilding()
		s = f.openOnline(name, byColor)
		s.put("n001", 2, 30, keyed("tag", "y"))
		expect := numbered(2, 10, 1)
		if after < 3 {
			expect = "n000 " + expect
		}
		crash()
		s = f.openOnline(name, byColor, byTag)
		s.wantBuilding("tag")
		s.build()
		s.wantMatches(driver.Query{Index: "tag", Equal: parts("x")}, expect)
	}
}

func openBuilds(f *fixture) {
	s := f.open("Books", byColor)
	s.put("a", 0, 1, keyed("tag", "x"))
	f.openOnline("Books", byColor, byTag).wantBuilding("tag")
	s = f.open("Books", byColor, byTag)
	s.wantBuilding()
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("x")}, "a")
}

func processesAgree(f *fixture) {
	if !f.harness.Features.Shared {
		return
	}
	backend, err := f.harness.Open(f.ctx)
	f.must(err)
	defer func() { f.must(backend.Close()) }()
	s := f.open("Books")
	s.put("a", 0, 1, keyed("tag", "x"))
	s = f.openOnline("Books", byTag)
	other := f.openIn(backend, "Books", byTag)
	builds := s.wantBuilding("tag")
	if theirs := other.wantBuilding("tag"); !slices.Equal(builds, theirs) {
		f.Fatalf("one process builds %v, another %v", builds, theirs)
	}
	s.reindex()
	f.must(other.Complete(f.ctx, builds))
	s.wantBuilding()
	other.wantBuilding()
	f.must(s.Complete(f.ctx, builds))
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("x")}, "a")
	f.openIn(backend, "Books").put("b", 0, 2, keyed("tag", "x"))
	s.wantBuilding("tag")
	other.wantBuilding("tag")
	other.build()
	s.wantBuilding()
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("x")}, "a b")
}

// buildDuringWrites builds an index while several handles write: none of their writes is lost, and the index has all
// keys in the end.
func buildDuringWrites(f *fixture) {
	const writers, records = 4, 12
	former := f.open("Books", byColor)
	for i := range records {
		former.put(fmt.Sprintf("n%03d", i), 0, uint64(i+1), keyed("color", "red").and("tag", "0"))
	}
	handles := []*testStore{f.openOnline("Books", byColor, byTag), f.openOnline("Books", byColor, byTag)}
	var built atomic.Bool
	var last [records]struct {
		sync.Mutex
		tag string
	}
	f.concurrently(writers+1, func(i int) error {
		if i == writers {
			defer built.Store(true)
			return driver.BuildIndexes(f.ctx, handles[0])
		}
		s := handles[i%len(handles)]
		for n := 1; n <= f.times(10) || !built.Load() && n < f.times(1000); n++ {
			at := (n*7 + i) % records
			uuid := fmt.Sprintf("n%03d", at)
			r, _, err := s.Get(f.ctx, uuid)
			if err != nil {
				return err
			}
			tag := fmt.Sprintf("%d-%d", i, n)
			w := s.write(uuid, r.Revision, r.Revision+1, keyed("color", "red").and("tag", tag))
			switch {
			case r.Deleted:
				w.IfRevision = 0
			case n%3 == 0:
				w = s.write(uuid, r.Revision, r.Revision+1, nil)
				tag = ""
			}
			last[at].Lock() // so that the order of the writes is known
			if err = s.Put(f.ctx, w); err == nil {
				last[at].tag = tag
			}
			last[at].Unlock()
			if err != nil && !errors.Is(err, errs.Mismatch) {
				return err
			}
		}
		return nil
	})
	handles[1].wantBuilding()
	for at := range last {
		uuid := fmt.Sprintf("n%03d", at)
		if tag := last[at].tag; tag != "" {
			handles[1].wantMatches(driver.Query{Index: "tag", Equal: parts(tag)}, uuid)
		}
	}
	all, err := handles[0].find(driver.Query{Index: "color"})
	f.must(err)
	live, err := handles[0].scan(1000)
	f.must(err)
	if uuids(all) != uuids(live) {
		f.Errorf("the index has %q, want %q", uuids(all), uuids(live))
	}
}
