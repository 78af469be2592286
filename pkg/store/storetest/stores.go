package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

func storesTests() []test {
	return []test{
		{"stores are isolated, also when their names have a common prefix", storesAreIsolated},
		{"Stores names every store that was opened", storesAreNamed},
		{"Ping succeeds", pingSucceeds},
	}
}

func storesAreIsolated(f *fixture) {
	names := []string{"Book", "Books", "BooksOld", "Books_", "Books-", "Books.x", "B", "b"}
	stores := make([]*testStore, len(names))
	for i, name := range names {
		stores[i] = f.open(name, byTag)
	}
	for i, s := range stores {
		s.put("a", 0, uint64(10*i+1), keyed("tag", "red").and("tag", s.name))
		s.put("of-"+s.name, 0, uint64(10*i+2), text("mine"))
	}
	for i, s := range stores {
		s.wantRecord("a", uint64(10*i+1), keyed("tag", "red").and("tag", s.name))
		s.wantScanInPages("a of-"+s.name, 1000)
		s.wantMatches(driver.Query{Index: "tag", Equal: parts(s.name)}, "a")
		s.wantPending(eventOf("a", uint64(10*i+1)).ID, eventOf("of-"+s.name, uint64(10*i+2)).ID)
	}
	first, second := stores[0], stores[1]
	first.put("a", 1, 100, nil)
	first.clearAll(3)
	first.wantPurged(1000, 10, 1)
	first.wantNone("a")
	first.wantMatches(driver.Query{Index: "tag", Equal: parts("red")}, "")
	second.wantRecord("a", 11, keyed("tag", "red").and("tag", second.name))
	second.wantPending("a/11", "of-Books/12")
	second.wantMatches(driver.Query{Index: "tag", Equal: parts("red")}, "a")
}

func storesAreNamed(f *fixture) {
	names := []string{"Book", "Books_", "Books.x", "B%20", "Bücher"}
	for _, name := range names {
		f.open(name)
	}
	f.open("Books_") // again
	got, err := f.backend.Stores(f.ctx)
	f.must(err)
	slices.Sort(got)
	slices.Sort(names)
	if got = slices.DeleteFunc(got, func(name string) bool { return !slices.Contains(names, name) }); !slices.Equal(got,
		names) {
		f.Errorf("stores are %q, want %q", got, names)
	}
}

func pingSucceeds(f *fixture) {
	f.must(f.backend.Ping(f.ctx))
}

func contextTests() []test {
	return []test{
		{"every method honors a canceled context", contextCanceled},
		{"every method honors an exceeded deadline", deadlineExceeded},
	}
}

func contextCanceled(f *fixture) {
	s := f.open("Books", byColor)
	s.put("a", 0, 1, keyed("color", "red"))
	s.wantPending("a/1")
	events := s.pending()
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	f.wantCanceled(ctx, s, events)
	s.wantRecord("a", 1, keyed("color", "red"))
	s.wantPending("a/1")
}

func deadlineExceeded(f *fixture) {
	s := f.open("Books", byColor)
	s.put("a", 0, 1, keyed("color", "red"))
	ctx, cancel := context.WithDeadline(f.ctx, time.Now().Add(-time.Second))
	defer cancel()
	f.wantCanceled(ctx, s, nil)
	s.wantRecord("a", 1, keyed("color", "red"))
}

// wantCanceled asserts that every method reports errs.Canceled and changes
// nothing.
func (f *fixture) wantCanceled(ctx context.Context, s *testStore, events []driver.Pending) {
	f.Helper()
	methods := map[string]func() error{
		"Ping":     func() error { return f.backend.Ping(ctx) },
		"Get":      func() error { _, _, err := s.Get(ctx, "a"); return err },
		"Put":      func() error { return s.Put(ctx, s.write("a", 1, 2, text("two"))) },
		"Query":    func() error { _, err := s.Query(ctx, driver.Query{Index: "color", Limit: 1}); return err },
		"Scan":     func() error { _, err := s.Scan(ctx, nil, 1); return err },
		"Pending":  func() error { _, _, err := s.Pending(ctx, nil, 1); return err },
		"Clear":    func() error { return s.Clear(ctx, append(events, driver.Pending{UUID: "x", Revision: 1})) },
		"Purge":    func() error { _, err := s.Purge(ctx, 1, 1); return err },
		"Count":    func() error { _, _, err := s.Count(ctx); return err },
		"Building": func() error { _, err := s.Building(ctx); return err },
		"Reindex":  func() error { return s.Reindex(ctx, []string{"a"}) },
		"Complete": func() error { return s.Complete(ctx, []driver.Build{{Index: "color", ID: "x"}}) },
		"Release":  func() error { return s.Release(ctx) },
		"Open": func() error {
			_, err := f.backend.Open(ctx, driver.Spec{Name: "Other", Indexes: s.indexes, Keys: s.keys})
			return err
		},
	}
	if i, ok := s.intersecter(); ok {
		q := driver.Query{Index: "color", Limit: 1}
		methods["Intersect"] = func() error { _, err := i.Intersect(ctx, q, nil, 1); return err }
		methods["CountCommon"] = func() error { _, _, err := i.CountCommon(ctx, q, nil, 1); return err }
	}
	for name, call := range methods {
		if err := call(); errs.KindOf(err) != errs.Canceled {
			f.Errorf("%s with an ended context: error %v, want one of kind %q", name, err, errs.Canceled)
		}
	}
}

func reopenTests() []test {
	return []test{
		{"everything is there after reopening", reopenKeeps},
		{"indexes may change", reopenOtherIndexes},
		{"cleared events and purged records don't reappear", reopenCleared},
		{"stores may be added", reopenMoreStores},
	}
}

// reopenIfSupported reopens a backend that keeps its data. For others the tests
// open the stores a second time, which must have the same result.
func (f *fixture) reopenIfSupported() {
	f.Helper()
	if f.harness.Features.Reopen {
		f.reopen()
	}
}

func reopenKeeps(f *fixture) {
	s := f.open("Books", byColor, byTag)
	for i := range uint64(40) {
		s.put(fmt.Sprintf("n%03d", i), 0, i+1, keyed("color", fmt.Sprint(i%5)).and("tag", fmt.Sprint(i)))
	}
	s.put("n007", 8, 300, nil)
	s.put("n008", 9, 301, keyed("color", "x"))
	f.reopenIfSupported()
	s = f.open("Books", byColor, byTag)
	s.wantRecord("n006", 7, keyed("color", "1").and("tag", "6"))
	s.wantRecord("n007", 300, nil)
	s.wantRecord("n008", 301, keyed("color", "x"))
	s.wantMatches(driver.Query{Index: "color", Equal: parts("x")}, "n008")
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("7")}, "")
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("9")}, "n009")
	s.wantPendingCount("n007", 2)
	if f.harness.Features.ExactCount {
		s.wantCount(39, 42)
	}
	s.wantMismatch("n008", 9, 400, text("stale"))
	s.put("n008", 301, 400, text("fresh"))
}

func reopenOtherIndexes(f *fixture) {
	s := f.open("Books", byColor)
	s.put("a", 0, 1, keyed("color", "red").and("tag", "x"))
	f.reopenIfSupported()
	s = f.open("Books", byTag)
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("x")}, "a")
	s.put("a", 1, 2, keyed("color", "blue").and("tag", "y"))
	f.reopenIfSupported()
	s = f.open("Books", byColor, byTag)
	s.wantMatches(driver.Query{Index: "color", Equal: parts("red")}, "")
	s.wantMatches(driver.Query{Index: "color", Equal: parts("blue")}, "a")
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("y")}, "a")
}

func reopenCleared(f *fixture) {
	s := f.open("Books")
	s.putDeleted("a", 2)
	s.clearAll(2)
	s.wantPurged(10, 10, 1)
	s.put("b", 0, 3, text("b"))
	f.reopenIfSupported()
	s = f.open("Books")
	s.wantNone("a")
	s.wantPending("b/3")
}

func reopenMoreStores(f *fixture) {
	for i := range 4 {
		for k := range i {
			f.open(fmt.Sprint("S", k), byColor).wantRecord("a", uint64(k+1), keyed("color", fmt.Sprint(k)))
		}
		f.open(fmt.Sprint("S", i), byColor).put("a", 0, uint64(i+1), keyed("color", fmt.Sprint(i)))
		f.reopenIfSupported()
	}
	for i := range 4 {
		f.open(fmt.Sprint("S", i), byColor).wantMatches(driver.Query{Index: "color"}, "a")
	}
}
