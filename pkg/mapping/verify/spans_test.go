package verify_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"belfry/pkg/mapping"
	"belfry/pkg/mapping/verify"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/test/model"
)

// watched is a backend that counts what is read of the store Books.
type watched struct {
	driver.Backend
	scans   atomic.Int64 // from the first object on
	records atomic.Int64 // in pages
	gets    atomic.Int64 // of any store
}

func (b *watched) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := b.Backend.Open(ctx, spec)
	return &watchedStore{s, spec.Name, b}, err
}

type watchedStore struct {
	driver.Store
	name string
	b    *watched
}

func (s *watchedStore) Scan(ctx context.Context, after []byte, limit int) (driver.Page, error) {
	page, err := s.Store.Scan(ctx, after, limit)
	if s.name == "Books" {
		if after == nil {
			s.b.scans.Add(1)
		}
		s.b.records.Add(int64(len(page.Records)))
	}
	return page, err
}

func (s *watchedStore) Get(ctx context.Context, uuid string) (driver.Record, bool, error) {
	s.b.gets.Add(1)
	return s.Store.Get(ctx, uuid)
}

// openWatched has authors whose arrays match their books.
func openWatched(t *testing.T, authors, booksOfEach int, m store.Mapping) (*fixture, *watched) {
	b := &watched{Backend: model.NewMemory()}
	m.Source, m.Target, m.Key, m.Array, m.Fields, m.Cascade = "Books", "Authors", "author", "books", []string{"title"},
		true
	set, err := model.OpenSet(t.Context(), b, []store.Mapping{m}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t, set}
	for a := range authors {
		author, array := fmt.Sprintf("a%04d", a), []byte("[")
		for n := range booksOfEach {
			book := fmt.Sprintf("b%04d-%04d", n, a)
			f.save("Books", book, `{"author":"`+author+`","title":"t"}`)
			if n > 0 {
				array = append(array, ',')
			}
			array = append(array, `{"uuid":"`+book+`","title":"t"}`...)
		}
		f.save("Authors", author, `{}`)
		f.array(author, string(append(array, ']')))
	}
	return f, b
}

// Arrays that match are compared by reading all objects once, in pages: a get for each entry would take several times
// as long.
func TestMatchingArraysAreComparedWithoutReadingSingleObjects(t *testing.T) {
	f, b := openWatched(t, 10, 20, store.Mapping{Limit: 100})
	b.scans.Store(0)
	b.gets.Store(0)
	r := f.run(verify.Options{})
	if scans, gets := b.scans.Load(), b.gets.Load(); !r.Clean() || r.Objects != 200 || r.Entries != 200 || scans != 1 ||
		gets != 0 {
		t.Errorf("%d scans and %d gets: %+v", scans, gets, r)
	}
}

// gate is a condition that holds for all objects, and waits until it is open.
type gate chan struct{}

func (g gate) Holds([]byte) bool { <-g; return true }

// However many objects there are, few are in memory: reading waits until those that have been read were used.
func TestFewObjectsAreInMemoryAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const objects, atOnce = 8000, 2500
		open := make(gate)
		f, b := openWatched(t, objects/10, 10, store.Mapping{Limit: 100, When: open})
		done := make(chan *verify.Report)
		go func() {
			r, err := verify.Run(f.Context(), f.set, verify.Options{})
			if err != nil {
				t.Error(err)
			}
			done <- r
		}()
		synctest.Wait()
		if n := b.records.Load(); n == 0 || n > atOnce {
			t.Errorf("%d objects are in memory, want at most %d", n, atOnce)
		}
		close(open)
		if r := <-done; r == nil || !r.Clean() || r.Objects != objects {
			t.Errorf("%+v", r)
		}
	})
}

// However many targets there are, at most so many are in memory: the objects are read again for the others.
func TestFewTargetsAreInMemoryAtOnce(t *testing.T) {
	const authors, atOnce = 200, 20
	f, b := openWatched(t, authors, 3, store.Mapping{Limit: 100})
	b.scans.Store(0)
	r := f.run(verify.Options{TargetsAtOnce: atOnce})
	if scans := b.scans.Load(); scans < authors/atOnce || scans > 2*authors/atOnce {
		t.Errorf("the objects were read %d times, for %d of %d targets at once", scans, atOnce, authors)
	}
	if !r.Clean() || r.Objects != 3*authors || r.Targets != authors || r.Entries != 3*authors {
		t.Errorf("%+v", r)
	}
}

// newDisorder is many authors and books with every kind of difference, by a source of random numbers.
func newDisorder(t *testing.T, random *rand.Rand) *fixture {
	set, err := model.OpenSet(t.Context(), model.NewMemory(), []store.Mapping{
		{Source: "Books", Target: "Authors", Key: "author", Array: "books", Fields: []string{"title"}, Cascade: true,
			Limit: 4, MaxBytes: 400, MaxEntry: 60},
		{Source: "Pages", Target: "Books", Key: "book", Cascade: true},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t, set}
	const authors, books = 40, 120
	for i := range authors {
		f.save("Authors", fmt.Sprint("a", i), `{}`)
	}
	titles := []string{"t", "t", "t", "another", "too large for an entry of this mapping, by far"}
	for i := range books {
		book := fmt.Sprint("b", i)
		named := fmt.Sprintf(`["a%d","a%d","nobody%d"]`, random.IntN(authors), random.IntN(authors),
			random.IntN(authors))
		f.save("Books", book, `{"author":`+named+`,"title":"`+titles[random.IntN(len(titles))]+`"}`)
		f.save("Pages", "p-"+book, `{"book":"`+book+`"}`)
	}
	for i := range authors {
		author := fmt.Sprint("a", i)
		if random.IntN(4) > 0 {
			all := make([]string, books)
			for n := range all {
				all[n] = fmt.Sprint("b", n)
			}
			f.must(mapping.NewReconciler(set, mapping.Options{}).Reconcile(t.Context(), &set.Mappings()[0], author,
				all))
		}
		switch random.IntN(8) {
		case 0:
			f.array(author, `[{"uuid":"b`+fmt.Sprint(random.IntN(books))+`","title":"t"}]`)
		case 1:
			f.array(author, `[{"title":"t"}]`)
		case 2:
			f.must(set.Store("Authors").Delete(t.Context(), author, 0))
		}
	}
	for range books / 10 {
		book := fmt.Sprint("b", random.IntN(books))
		if found, err := set.Store("Books").Exists(t.Context(), book); err == nil && found {
			f.must(set.Store("Books").Delete(t.Context(), book, 0))
		}
	}
	return f
}

// What is found does not depend on how many targets are in memory.
func TestASpanOfTargetsFindsWhatAllTogetherDo(t *testing.T) {
	for seed := range uint64(5) {
		f := newDisorder(t, rand.New(rand.NewPCG(seed, 1)))
		want := f.run(verify.Options{})
		if len(want.Differences) == 0 || len(want.Full) == 0 || len(want.TooLarge) == 0 {
			t.Fatalf("by %d: %+v", seed, want)
		}
		for _, atOnce := range []int{1, 2, 7, 30} {
			if got := f.run(verify.Options{TargetsAtOnce: atOnce}); !reflect.DeepEqual(got, want) {
				t.Errorf("by %d, %d at once: the report is another one, with %d differences of %d, and %d objects of "+
					"%d that are too large",
					seed, atOnce, len(got.Differences), len(want.Differences), len(got.TooLarge), len(want.TooLarge))
			}
		}
		if r := f.run(verify.Options{TargetsAtOnce: 3, Repair: true, Alone: true}); !r.Clean() {
			t.Errorf("by %d: a repair left %+v", seed, r.Differences)
		}
	}
}

// An object of each of many strangers names one target, which can't be split.
func TestTheTargetThatManyStrangersNameIsOneSpan(t *testing.T) {
	f := newFixture(t, 10)
	f.sameOwner("user", "user")
	f.setOwner("b", "ann")
	for i := range 50 {
		f.save("Books", fmt.Sprint("s", i), fmt.Sprintf(`{"author":["a","b","c"],"title":"t","user":"u%d"}`, i))
	}
	f.save("Books", "own", `{"author":["a","b","c"],"title":"t","user":"ann"}`)
	r := f.run(verify.Options{TargetsAtOnce: 2})
	if len(r.Differences) != 1 || r.Differences[0].Kind != verify.Missing || r.Differences[0].UUID != "own" ||
		r.Differences[0].Holder != "b" {
		t.Errorf("%+v", r.Differences)
	}
}

// The order of entries is that in which they were added: any one is right.
func TestAnArrayInAnotherOrderIsClean(t *testing.T) {
	f := newFixture(t, 10, "x", "y", "z")
	f.array("a", `[{"uuid":"z","title":"t"},{"uuid":"x","title":"t"},{"uuid":"y","title":"t"}]`)
	if r := f.run(verify.Options{}); !r.Clean() {
		t.Errorf("%+v", r.Differences)
	}
}

// Every change of an entry is found, wherever it is.
func TestAnyChangeOfAnArrayIsFound(t *testing.T) {
	f := newFixture(t, 10, "x", "y", "z")
	a, err := f.set.Store("Authors").Get(t.Context(), "a")
	f.must(err)
	array := object.Field(a.Body, "books")
	for i, b := range array {
		if b != 't' && b != 'x' && b != 'y' && b != 'z' {
			continue // the syntax
		}
		changed := append([]byte{}, array...)
		changed[i] = 'q'
		f.array("a", string(changed))
		if r := f.run(verify.Options{}); r.Clean() {
			t.Errorf("%s is not found", changed)
		}
	}
}
