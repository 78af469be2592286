package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

func onlineTests() []test {
	return []test{
		{"the indexes of a new store are complete", newStoreIsComplete},
		{"a new index is built in the background", indexIsBuilt},
		{"an index is not complete by writes alone", writesDoNotComplete},
		{"reindexing changes neither records nor events", reindexKeeps},
		{"reindexing does nothing for a record that does not exist", reindexDeleted},
		{"reindexing writes all keys of an array", reindexArrays},
		{"a write of a record that is being reindexed is not lost", writeDuringReindex},
		{"a handle that has not written makes no index incomplete", onlyWritesUnlist},
		{"a former handle reads its index while it is removed", formerHandleReads},
		{"an index that is added again is built again", addedAgainIsBuilt},
		{"an index that is added again after it was released is built again", addedAfterRelease},
		{"a build is over when something without its index has written", buildIsOver},
		{"a build of an index that the handle does not list is over", buildOfOthers},
		{"an index with another number of parts is built beside the former one", changedIsBuilt},
		{"a build continues after a crash between any two steps", buildContinues},
		{"opening builds what is not complete", openBuilds},
		{"another process sees that an index is complete, and that it is not", processesAgree},
	}
}

// openOnline opens a store beside its other handles.
func (f *fixture) openOnline(name string, indexes ...driver.Index) *testStore {
	f.Helper()
	return f.openIn(f.backend, name, indexes...)
}

func (f *fixture) openIn(backend driver.Backend, name string, indexes ...driver.Index) *testStore {
	f.Helper()
	s := &testStore{f: f, name: name, indexes: indexes}
	store, err := backend.Open(f.ctx, driver.Spec{Name: name, Indexes: indexes, Keys: s.keys, Online: true})
	if err != nil {
		f.Fatalf("opening the store %s online: %v", name, err)
	}
	s.Store = store
	return s
}

// wantBuilding asserts which indexes are not complete, and returns their builds.
func (s *testStore) wantBuilding(want ...string) []driver.Build {
	s.f.Helper()
	builds, err := s.Building(s.f.ctx)
	s.f.must(err)
	var names []string
	for _, b := range builds {
		names = append(names, b.Index)
	}
	slices.Sort(names)
	if !slices.Equal(names, want) {
		s.f.Fatalf("the indexes %q are being built, want %q", names, want)
	}
	return builds
}

// reindex reindexes all records.
func (s *testStore) reindex() {
	s.f.Helper()
	all, err := s.scan(1000)
	s.f.must(err)
	names := strings.Fields(uuids(all))
	for some := range slices.Chunk(names, 7) {
		s.f.must(s.Reindex(s.f.ctx, some))
	}
}

// build builds all indexes.
func (s *testStore) build() {
	s.f.Helper()
	s.f.must(driver.BuildIndexes(s.f.ctx, s))
	s.wantBuilding()
}

func newStoreIsComplete(f *fixture) {
	s := f.openOnline("Books", byColor, byTag)
	s.wantBuilding()
	s.put("a", 0, 1, keyed("color", "red"))
	s.wantMatches(driver.Query{Index: "color"}, "a")
	f.openOnline("Books", byColor, byTag).wantBuilding()
}

func indexIsBuilt(f *fixture) {
	former := f.open("Books", byColor)
	for i := range 20 {
		former.put(fmt.Sprintf("n%03d", i), 0, uint64(i+1),
			keyed("color", "red").and("tag", fmt.Sprint(i%4)).and("tag", "all"))
	}
	s := f.openOnline("Books", byColor, byTag)
	builds := s.wantBuilding("tag")
	former.put("n000", 1, 101, keyed("color", "red").and("tag", "former"))
	s.put("n001", 2, 102, keyed("color", "red").and("tag", "new"))
	s.put("n002", 3, 103, nil)
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("new")}, "n001")
	s.wantMatches(driver.Query{Index: "color", Limit: 1000}, "n000 n001 "+numbered(3, 20, 1))
	s.reindex()
	s.wantBuilding("tag")
	f.must(s.Complete(f.ctx, builds))
	s.wantBuilding()
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("former")}, "n000")
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("new")}, "n001")
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("all"), Limit: 3}, numbered(3, 20, 1))
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("1")}, numbered(5, 20, 4))
	f.must(s.Complete(f.ctx, builds)) // as another process would that has built the same
	s.wantBuilding()
}

// numbered returns the UUIDs from a number to below another.
func numbered(from, to, step int) string {
	var names []string
	for i := from; i < to; i += step {
		names = append(names, fmt.Sprintf("n%03d", i))
	}
	return strings.Join(names, " ")
}

func writesDoNotComplete(f *fixture) {
	s := f.open("Books")
	s.put("a", 0, 1, keyed("tag", "x"))
	s = f.openOnline("Books", byTag)
	s.put("a", 1, 2, keyed("tag", "x"))
	s.reindex()
	s.wantBuilding("tag")
	f.openOnline("Books", byTag).wantBuilding("tag")
}

func reindexKeeps(f *fixture) {
	s := f.open("Books")
	s.put("a", 0, 1, keyed("tag", "x"))
	s.put("a", 1, 2, keyed("tag", "y"))
	s.putDeleted("b", 3)
	s = f.openOnline("Books", byTag)
	s.build()
	s.wantRecord("a", 2, keyed("tag", "y"))
	s.wantRecord("b", 3, nil)
	s.wantPending("a/1", "a/2", "b/2", "b/3")
	if f.harness.Features.ExactCount {
		s.wantCount(1, 4)
	}
	s.wantMismatch("a", 1, 5, text("stale"))
	s.put("a", 2, 5, keyed("tag", "z"))
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("y")}, "")
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("z")}, "a")
}

func reindexDeleted(f *fixture) {
	s := f.open("Books")
	s.put("a", 0, 1, keyed("tag", "x"))
	s.put("b", 0, 2, keyed("tag", "x"))
	s = f.openOnline("Books", byTag)
	builds := s.wantBuilding("tag")
	s.put("a", 1, 3, nil)
	f.must(s.Reindex(f.ctx, []string{"a", "b", "none"}))
	f.must(s.Reindex(f.ctx, nil))
	f.must(s.Complete(f.ctx, builds))
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("x")}, "b")
	s.wantRecord("a", 3, nil)
	s.wantNone("none")
	s.clearAll(3)
	s.wantPurged(10, 10, 1)
}

func reindexArrays(f *fixture) {
	const n = 1200
	s := f.open("Books")
	large := &doc{}
	for i := range n {
		large.and("tag", fmt.Sprint("t", i))
	}
	s.put("large", 0, 1, large)
	s.put("small", 0, 2, keyed("tag", "t7"))
	s = f.openOnline("Books", byTag)
	s.build()
	for _, i := range []int{0, 1, n / 2, n - 1} {
		s.wantMatches(driver.Query{Index: "tag", Equal: parts(fmt.Sprint("t", i))}, "large")
	}
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("t7")}, "large small")
	s.put("large", 1, 3, keyed("tag", "t7"))
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("t8")}, "")
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("t7")}, "large small")
}

// writeDuringReindex writes a record when its keys are being computed. A backend may have the write wait for that.
func writeDuringReindex(f *fixture) {
	for name, next := range map[string]*doc{"Updated": keyed("tag", "new"), "Deleted": nil} {
		s := f.open(name)
		s.put("a", 0, 1, keyed("tag", "old"))
		written := make(chan error, 1)
		var once sync.Once
		s = &testStore{f: f, name: name, indexes: []driver.Index{byTag}}
		store, err := f.backend.Open(f.ctx,
			driver.Spec{Name: name, Indexes: s.indexes, Online: true, Keys: func(body []byte) []driver.Key {
				once.Do(func() {
					done := make(chan struct{})
					go func() {
						written <- s.Put(f.ctx, s.write("a", 1, 2, next))
						close(done)
					}()
					select {
					case <-done:
					case <-time.After(50 * time.Millisecond): // it waits
					}
				})
				return s.keys(body)
			}})
		f.must(err)
		s.Store = store
		f.must(s.Reindex(f.ctx, []string{"a"}))
		f.must(<-written)
		s.wantRecord("a", 2, next)
		s.wantMatches(driver.Query{Index: "tag", Equal: parts("old")}, "")
		s.wantMatches(driver.Query{Index: "tag", Equal: parts("new")}, map[bool]string{true: "a"}[next != nil])
	}
}

func onlyWritesUnlist(f *fixture) {
	former := f.open("Books", byColor, byTag)
	former.put("a", 0, 1, keyed("tag", "x"))
	s := f.openOnline("Books", byColor)
	s.wantRecord("a", 1, keyed("tag", "x"))
	former.wantBuilding()
	f.openOnline("Books", byColor, byTag).wantBuilding()
	s.put("b", 0, 2, keyed("tag", "x"))
	former.wantBuilding("tag")
}

func formerHandleReads(f *fixture) {
	former := f.open("Books", byColor, byTag)
	for i := range 9 {
		former.put(fmt.Sprintf("n%03d", i), 0, uint64(i+1), keyed("color", "red").and("tag", "x"))
	}
	s := f.openOnline("Books", byColor)
	s.put("n000", 1, 20, keyed("color", "blue").and("tag", "y"))
	s.put("n001", 2, 21, nil)
	former.wantMatches(driver.Query{Index: "color", Equal: parts("blue")}, "n000")
	found, err := former.find(driver.Query{Index: "tag", Equal: parts("x"), Limit: 2})
	f.must(err)
	if got := strings.Fields(uuids(found)); !containsAll(got, strings.Fields(numbered(2, 9, 1))) {
		f.Errorf("the former handle finds %q", got)
	}
	former.put("n002", 3, 22, keyed("color", "green").and("tag", "z")) // a request that is still in flight
	s.wantMatches(driver.Query{Index: "color", Equal: parts("green")}, "n002")
	f.must(s.Release(f.ctx))
	s.wantMatches(driver.Query{Index: "color", Equal: parts("red")}, numbered(3, 9, 1))
	s.put("n002", 22, 23, keyed("color", "red").and("tag", "z"))
	s.wantMatches(driver.Query{Index: "color", Equal: parts("red")}, numbered(2, 9, 1))
}

func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

func addedAgainIsBuilt(f *fixture) { f.addAgain(false) }
func addedAfterRelease(f *fixture) { f.addAgain(true) }

func (f *fixture) addAgain(release bool) {
	s := f.open("Books", byColor, byTag)
	for i, uuid := range []string{"a", "b", "c", "d"} {
		s.put(uuid, 0, uint64(i+1), keyed("color", "red").and("tag", "old"))
	}
	s = f.openOnline("Books", byColor)
	s.put("a", 1, 11, keyed("tag", "new"))
	s.put("b", 2, 12, nil)
	s.put("d", 4, 13, nil)
	s.put("d", 0, 14, keyed("tag", "new"))
	s.put("e", 0, 15, keyed("tag", "old"))
	if release {
		f.must(s.Release(f.ctx))
	}
	s = f.openOnline("Books", byColor, byTag)
	s.wantBuilding("tag")
	s.put("f", 0, 16, keyed("tag", "new"))
	s.build()
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("old")}, "c e")
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("new")}, "a d f")
	s.wantMatches(driver.Query{Index: "color", Equal: parts("red")}, "c")
}

func buildIsOver(f *fixture) {
	s := f.open("Books")
	s.put("a", 0, 1, keyed("tag", "x"))
	s = f.openOnline("Books", byTag)
	builds := s.wantBuilding("tag")
	s.reindex()
	other := f.openOnline("Books")
	other.put("b", 0, 2, keyed("tag", "x"))
	f.wantKind(s.Complete(f.ctx, builds), errs.Mismatch)
	again := s.wantBuilding("tag")
	f.wantKind(s.Complete(f.ctx, builds), errs.Mismatch)
	s.reindex()
	f.must(s.Complete(f.ctx, again))
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("x")}, "a b")
	s.wantBuilding()
	// A complete index that was built again, too.
	f.openOnline("Books").put("c", 0, 3, keyed("tag", "x"))
	f.wantKind(s.Complete(f.ctx, again), errs.Mismatch)
	s.build()
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("x")}, "a b c")
}

func buildOfOthers(f *fixture) {
	s := f.open("Books")
	s.put("a", 0, 1, keyed("tag", "x"))
	builds := f.openOnline("Books", byTag).wantBuilding("tag")
	f.wantKind(f.openOnline("Books", byColor).Complete(f.ctx, builds), errs.Mismatch)
}

func changedIsBuilt(f *fixture) {
	one, two := driver.Index{Name: "x", Parts: 1}, driver.Index{Name: "x", Parts: 2}
	s := f.open("Books", one)
	s.put("a", 0, 1, keyed("x", "1"))
	s = f.openOnline("Books", two)
	s.wantBuilding("x")
	s.put("a", 1, 2, keyed("x", "1", "2"))
	s.put("b", 0, 3, keyed("x", "1", "1"))
	s.build()
	s.wantMatches(driver.Query{Index: "x", Equal: parts("1")}, "b a")
	f.must(s.Release(f.ctx))
	s.wantMatches(driver.Query{Index: "x", Equal: parts("1", "2")}, "a")
}
