package mapping_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"belfry/pkg/mapping"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/test/model"
)

// manyBackend reads several records by one request, and keeps a log of its requests.
type manyBackend struct {
	driver.Backend
	before func(request string)

	mu  sync.Mutex
	log []string

	gate     chan struct{} // lets one deletion pass; nil: all
	inFlight atomic.Int64  // deletions that wait for it
}

// Open implements driver.Backend.
func (b *manyBackend) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := b.Backend.Open(ctx, spec)
	return &manyStore{s, spec.Name, b}, err
}

type manyStore struct {
	driver.Store
	name string
	b    *manyBackend
}

func (s *manyStore) note(format string, args ...any) {
	request := s.name + " " + fmt.Sprintf(format, args...)
	s.b.mu.Lock()
	s.b.log = append(s.b.log, request)
	s.b.mu.Unlock()
	if s.b.before != nil {
		s.b.before(request)
	}
}

// Get implements driver.Store.
func (s *manyStore) Get(ctx context.Context, uuid string) (driver.Record, bool, error) {
	s.note("get %s", uuid)
	return s.Store.Get(ctx, uuid)
}

// Put implements driver.Store.
func (s *manyStore) Put(ctx context.Context, w driver.Write) error {
	s.note("put %s", w.UUID)
	if s.b.gate != nil && w.Body == nil {
		s.b.inFlight.Add(1)
		<-s.b.gate
		s.b.inFlight.Add(-1)
	}
	return s.Store.Put(ctx, w)
}

// GetMany implements driver.ManyGetter.
func (s *manyStore) GetMany(ctx context.Context, uuids []string) ([]driver.Record, error) {
	s.note("get many %d", len(uuids))
	return driver.GetMany(ctx, s.Store, uuids)
}

// manyFixture is a fixture on a backend that reads several records by one request, with an author and some books.
func manyFixture(t *testing.T, books int) (f *fixture, b *manyBackend, uuids []string) {
	t.Helper()
	b = &manyBackend{Backend: model.NewMemory()}
	set, err := model.OpenSet(t.Context(), b, []store.Mapping{{
		Source: "Books", Target: "Authors", Key: "author", Array: "books", Fields: []string{"title"}, Limit: 1000,
	}}, func(o *store.Options) { o.Locker = model.NoLock{} })
	f = &fixture{T: t, set: set}
	f.must(err)
	f.mapping, f.reconciler = &set.Mappings()[0], mapping.NewReconciler(set, mapping.Options{})
	f.save("Authors", "a", `{}`)
	for i := range books {
		uuids = append(uuids, fmt.Sprintf("x%03d", i))
		f.save("Books", uuids[i], `{"author":"a","title":"1"}`)
	}
	b.log = nil
	return f, b, uuids
}

func (f *fixture) books() []byte {
	f.Helper()
	a, err := f.set.Store("Authors").Get(f.Context(), "a")
	f.must(err)
	return object.Field(a.Body, "books")
}

// A round reads the target, then its sources together, writes, and reads the sources together again. A source that
// there is not, one that is no uuid, and one that is named twice are no exceptions.
func TestARoundReadsItsSourcesTogether(t *testing.T) {
	f, b, uuids := manyFixture(t, 40)
	sources := append(slices.Clone(uuids), "gone", uuids[0], "no/uuid")
	f.must(f.reconciler.Reconcile(f.Context(), f.mapping, "a", sources))
	want := []string{
		"Authors get a", "Books get many 32", "Books get many 9", "Books get no/uuid", "Authors put a",
		"Books get many 32", "Books get many 9", "Books get no/uuid",
	}
	if !slices.Equal(b.log, want) {
		t.Errorf("the requests are\n%s\nwant\n%s", strings.Join(b.log, "\n"), strings.Join(want, "\n"))
	}
	if n := bytes.Count(f.books(), []byte(`{"uuid":`)); n != len(uuids) {
		t.Errorf("%d entries, want %d", n, len(uuids))
	}
}

// A single source is read by the request for one.
func TestASingleSourceIsReadByItself(t *testing.T) {
	f, b, uuids := manyFixture(t, 1)
	f.must(f.reconciler.Reconcile(f.Context(), f.mapping, "a", uuids))
	if want := []string{"Authors get a", "Books get x000", "Authors put a", "Books get x000"}; !slices.Equal(b.log,
		want) {
		t.Errorf("the requests are %q", b.log)
	}
}

// A source that changes after it was read together with others is read again after the write.
func TestASourceThatChangesAfterItWasReadTogetherIsCorrected(t *testing.T) {
	f, b, uuids := manyFixture(t, 3)
	b.before = func(request string) {
		if request != "Authors put a" {
			return
		}
		b.before = nil
		o, err := object.Parse([]byte(`{"title":"2"}`))
		f.must(err)
		_, err = f.set.Store("Books").Update(f.Context(), o, store.UpdateOptions{UUID: "x001"})
		f.must(err)
	}
	f.must(f.reconciler.Reconcile(f.Context(), f.mapping, "a", uuids))
	if books := f.books(); !bytes.Contains(books, []byte(`{"uuid":"x001","title":"2"}`)) ||
		bytes.Count(books, []byte(`"1"`)) != 2 {
		t.Errorf("%s", books)
	}
}

// What was read for one attempt is read again for the next one, after the target.
func TestSourcesAreReadAgainAfterAConflict(t *testing.T) {
	f, b, uuids := manyFixture(t, 2)
	b.before = func(request string) {
		if request != "Authors put a" {
			return
		}
		b.before = nil
		for name, uuid := range map[string]string{"Authors": "a", "Books": "x001"} {
			o, err := object.Parse([]byte(`{"title":"2"}`))
			f.must(err)
			_, err = f.set.Store(name).Update(f.Context(), o, store.UpdateOptions{UUID: uuid})
			f.must(err)
		}
	}
	f.must(f.reconciler.Reconcile(f.Context(), f.mapping, "a", uuids))
	if books := f.books(); !bytes.Contains(books, []byte(`{"uuid":"x001","title":"2"}`)) {
		t.Errorf("%s", books)
	}
	if n := slices.Index(b.log[1:], "Authors get a"); n < 0 || !slices.Contains(b.log[n:], "Books get many 2") {
		t.Errorf("the requests are %q", b.log)
	}
}

// shown is a condition that objects with one title meet.
type shown struct{}

// Holds implements store.Condition.
func (shown) Holds(body []byte) bool { return bytes.Contains(body, []byte(`"shown"`)) }

// An array that is refilled reads one object, and more at once where those before have no entry.
func TestARefillReadsHiddenObjectsTogether(t *testing.T) {
	for hidden, want := range map[int][]string{
		0: {"Books get x002"},
		70: {"Books get x002", "Books get many 2", "Books get many 4", "Books get many 8", "Books get many 16",
			"Books get many 32", "Books get many 8"},
	} {
		f, b, uuids := manyFixture(t, 2)
		f.mapping.Limit = 2
		f.must(f.reconciler.Reconcile(f.Context(), f.mapping, "a", uuids))
		for i := range hidden {
			f.save("Books", fmt.Sprintf("x%03d", 2+i), `{"author":"a","title":"hidden"}`)
		}
		last := fmt.Sprintf("x%03d", 2+hidden)
		f.save("Books", last, `{"author":"a","title":"shown"}`)
		f.mapping.When = shown{}
		f.must(f.reconciler.Reconcile(f.Context(), f.mapping, "a", []string{last})) // the array is full
		f.mapping.When = nil
		if hidden > 0 {
			f.mapping.When = shown{}
		}
		f.must(f.set.Store("Books").Delete(f.Context(), "x000", 0))
		b.log = nil
		f.must(f.reconciler.Reconcile(f.Context(), f.mapping, "a", []string{"x000"}))
		if !bytes.Contains(f.books(), []byte(last)) {
			t.Errorf("%d hidden: the object is not in %s", hidden, f.books())
		}
		if from := slices.Index(b.log, "Books get x000"); !slices.Equal(b.log[from+1:from+1+len(want)], want) {
			t.Errorf("%d hidden: the requests are\n%s\nwant\n%s", hidden, strings.Join(b.log, "\n"),
				strings.Join(want, "\n"))
		}
	}
}

// The sources of a deleted target are read together, and those that are left are deleted at once, some of them.
func TestOrphansAreReadAndDeletedTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const books, atOnce = 70, 16
		f, b, uuids := manyFixture(t, books)
		f.mapping.Cascade = true
		f.must(f.set.Store("Books").Delete(f.Context(), "x001", 0))
		f.must(f.set.Store("Authors").Delete(f.Context(), "a", 0))
		b.log, b.gate = nil, make(chan struct{})
		done := make(chan error, 1)
		go func() { done <- f.reconciler.Reconcile(f.Context(), f.mapping, "a", uuids) }()
		for left := books - 1; left > 0; left-- {
			synctest.Wait()
			if n := b.inFlight.Load(); n > atOnce || left == books-1 && n != atOnce {
				t.Errorf("%d deletions are in flight, want %d", n, atOnce)
			}
			b.gate <- struct{}{}
		}
		f.must(<-done)
		many := slices.DeleteFunc(b.log, func(r string) bool { return !strings.HasPrefix(r, "Books get many") })
		if want := []string{"Books get many 32", "Books get many 32", "Books get many 6"}; !slices.Equal(many, want) {
			t.Errorf("the sources are read by %q, want %q", many, want)
		}
		if n, _, err := f.set.Store("Books").Count(f.Context()); n != 0 || err != nil {
			t.Errorf("%d books are left, error %v", n, err)
		}
	})
}
