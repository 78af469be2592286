package mongostore_test

import (
	"errors"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/test/backing"
	"belfry/test/kit"
)

// TestACrashWhileAnIndexIsCompletedLeavesItIncomplete: the database makes the index first, which follows whatever keys
// documents have. It is complete once its build is over.
func TestACrashWhileAnIndexIsCompletedLeavesItIncomplete(t *testing.T) {
	t.Parallel()
	p := newProxy(t, backing.StartMongo(t).Address)
	b := open(t, "mongodb://"+p.address)
	plain, err := b.Open(t.Context(), driver.Spec{Name: "Books"})
	must(t, err)
	w := write("a", 0, 1, "x")
	w.Keys = nil
	must(t, plain.Put(t.Context(), w))
	online := books()
	online.Online = true
	s, err := b.Open(t.Context(), online)
	must(t, err)
	builds := wantBuilds(t, s, 1)
	must(t, s.Reindex(t.Context(), []string{"a"}))
	p.first(1000, "update", refuses(1, "the database system is shutting down"))
	wantKind(t, s.Complete(t.Context(), builds), errs.Unavailable)
	p.faults(nil)
	if names := indexNames(t, administrator(t, "mongodb://"+p.address).Collection("Books")); !names["belfry.k:tag:1m"] {
		t.Errorf("the indexes are %v", names)
	}
	s, err = b.Open(t.Context(), online)
	must(t, err)
	wantBuilds(t, s, 1)
	kit.WaitUntil(t, func() error { return s.Complete(t.Context(), builds) })
	wantBuilds(t, s, 0)
	page, err := s.Query(t.Context(), queryTag("x"))
	must(t, err)
	if len(page.Records) != 1 {
		t.Errorf("the index has %d records", len(page.Records))
	}
}

func wantBuilds(t *testing.T, s driver.Store, n int) []driver.Build {
	t.Helper()
	builds, err := s.Building(t.Context())
	must(t, err)
	if len(builds) != n {
		t.Fatalf("%v are being built, want %d", builds, n)
	}
	return builds
}

// TestAnIndexThatSomebodyDropsIsBuiltAgain: an administrator, or a release before.
func TestAnIndexThatSomebodyDropsIsBuiltAgain(t *testing.T) {
	t.Parallel()
	url := backing.Mongo(t)
	s := openBooks(t, open(t, url))
	must(t, s.Put(t.Context(), write("a", 0, 1, "x")))
	collection := administrator(t, url).Collection("Books")
	must(t, collection.Indexes().DropOne(t.Context(), "belfry.k:tag:1m"))
	builds := wantBuilds(t, s, 1)
	other, err := open(t, url).Open(t.Context(), func() driver.Spec { o := books(); o.Online = true; return o }())
	must(t, err)
	if again := wantBuilds(t, other, 1); again[0] != builds[0] {
		t.Errorf("another process builds %v, not %v", again, builds)
	}
	must(t, driver.BuildIndexes(t.Context(), other))
	wantBuilds(t, s, 0)
}

// TestAnIndexThatIsRemovedStaysUntilItIsReleased: processes that list it read it meanwhile.
func TestAnIndexThatIsRemovedStaysUntilItIsReleased(t *testing.T) {
	t.Parallel()
	url := backing.Mongo(t)
	b := open(t, url)
	former := openBooks(t, b)
	must(t, former.Put(t.Context(), write("a", 0, 1, "x")))
	s, err := b.Open(t.Context(), driver.Spec{Name: "Books", Online: true})
	must(t, err)
	w := write("b", 0, 2, "x")
	w.Keys = nil
	must(t, s.Put(t.Context(), w))
	collection := administrator(t, url).Collection("Books")
	if !indexNames(t, collection)["belfry.k:tag:1m"] {
		t.Error("it has been dropped")
	}
	must(t, s.Release(t.Context()))
	if indexNames(t, collection)["belfry.k:tag:1m"] {
		t.Error("it is still there")
	}
	if err := former.Complete(t.Context(), []driver.Build{{Index: "tag", ID: "over"}}); !errors.Is(err, errs.Mismatch) {
		t.Errorf("it is complete: %v", err)
	}
}

// TestSeveralIndexesThatTheDatabaseHasAreCompleted: a handle without them has written. Two at once are more than one
// for FerretDB 1, which crashes when it is to create indexes that it has.
func TestSeveralIndexesThatTheDatabaseHasAreCompleted(t *testing.T) {
	t.Parallel()
	b := open(t, backing.Mongo(t))
	both := books()
	both.Indexes = append(both.Indexes, driver.Index{Name: "year", Parts: 1}, driver.Index{Name: "place", Parts: 1})
	s, err := b.Open(t.Context(), both)
	must(t, err)
	must(t, s.Put(t.Context(), write("a", 0, 1, "x")))
	without, err := b.Open(t.Context(), driver.Spec{Name: "Books", Online: true})
	must(t, err)
	w := write("b", 0, 2, "x")
	w.Keys = nil
	must(t, without.Put(t.Context(), w))
	builds := wantBuilds(t, s, 3)
	must(t, s.Reindex(t.Context(), []string{"a", "b"}))
	must(t, s.Complete(t.Context(), builds))
	wantBuilds(t, s, 0)
}
