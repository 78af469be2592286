package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
)

// shelf is a backend in which one store of books is opened several times.
type shelf struct {
	*testing.T
	driver.Backend
	opened  int // handles with objects
	refuses bool
}

func newShelf(t *testing.T) *shelf {
	b, err := filestore.Open(t.TempDir(), filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return &shelf{T: t, Backend: b}
}

func (f *shelf) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	if f.refuses {
		return nil, errs.New(errs.Unavailable, "the backend is down")
	}
	if spec.Name == "Books" {
		f.opened++
	}
	return f.Backend.Open(ctx, spec)
}

func (f *shelf) open(open func(context.Context, driver.Backend, store.Options) (*store.Store, error),
	o store.Options) *store.Store {
	f.Helper()
	o.Name, o.Outbox = "Books", &outbox{}
	s, err := open(f.Context(), f, o)
	if err != nil {
		f.Fatal(err)
	}
	return s
}

func (f *shelf) reconfigured(s *store.Store, o store.Options) *store.Store {
	f.Helper()
	o.Name = "Books"
	other, err := s.Reconfigured(f.Context(), f, o)
	if err != nil {
		f.Fatal(err)
	}
	return other
}

// build builds the indexes of a store.
func build(t *testing.T, s *store.Store) {
	t.Helper()
	builds, err := s.Indexes().Building(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for o, err := range s.All(t.Context(), 100) {
		if err == nil {
			err = s.Indexes().Reindex(t.Context(), []string{o.UUID})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Indexes().Complete(t.Context(), builds); err != nil {
		t.Fatal(err)
	}
}

func indexesOn(fields ...string) (all []query.Index) {
	for _, f := range fields {
		all = append(all, query.NewIndex(strings.Split(f, ",")))
	}
	return all
}

func indexedUUIDs(t *testing.T, s *store.Store, o store.ListOptions) []string {
	t.Helper()
	l, err := s.List(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return listedUUIDs(l)
}

// wantBuilding asserts that an error says which index is being built, and when to try again.
func wantBuilding(t *testing.T, err error, says string) {
	t.Helper()
	e := (*errs.Error)(nil)
	if !errors.As(err, &e) || e.Kind != errs.Unavailable || e.RetryAfter <= 0 || !strings.Contains(e.Message, says) {
		t.Errorf("got the error %v, want one that says %q", err, says)
	}
}

func TestAListWhoseIndexIsBeingBuiltIsUnavailable(t *testing.T) {
	f := newShelf(t)
	former := f.open(store.Open, store.Options{Indexes: indexesOn("author")})
	for i := range 6 {
		save(t, former, fmt.Sprint("b", i), fmt.Sprintf(`{"author":"a%d","year":%d,"title":"t"}`, i%2, 2000-i))
	}
	s := f.open(store.OpenOnline, store.Options{Indexes: indexesOn("author", "year", "author,year")})
	byYear := store.ListOptions{Sort: "year"}
	_, err := s.List(t.Context(), byYear)
	wantBuilding(t, err, "the index year of Books is being built: lists by it are possible when it is complete")
	s.Indexes().SetProgress(40)
	_, err = s.List(t.Context(), store.ListOptions{Filter: `author == "a1"`, Sort: "year"})
	wantBuilding(t, err, "the index author, year of Books is being built (40 %)")
	_, err = s.List(t.Context(), store.ListOptions{Filter: `title == "t"`})
	if errs.KindOf(err) != errs.Invalid {
		t.Errorf("a list without any index: %v", err)
	}
	if names, err := s.Building(t.Context()); err != nil || !slices.Equal(names, []string{"year", "author,year"}) {
		t.Errorf("%q are being built, %v", names, err)
	}
	// Others are served, also by another index.
	if got := indexedUUIDs(t, s, store.ListOptions{}); len(got) != 6 {
		t.Errorf("all: %v", got)
	}
	if got := indexedUUIDs(t, s, store.ListOptions{Filter: `author == "a1"`}); !slices.Equal(got,
		[]string{"b1", "b3", "b5"}) {
		t.Errorf("by author: %v", got)
	}
	save(t, s, "b6", `{"author":"a1","year":1990}`)
	build(t, s)
	if got := indexedUUIDs(t, s, byYear); !slices.Equal(got, []string{"b6", "b5", "b4", "b3", "b2", "b1", "b0"}) {
		t.Errorf("by year: %v", got)
	}
	if got := indexedUUIDs(t, s, store.ListOptions{Filter: `author == "a1"`, Sort: "year"}); !slices.Equal(got,
		[]string{"b6", "b5", "b3", "b1"}) {
		t.Errorf("by author and year: %v", got)
	}
}

// What an index only makes cheaper is done without it.
func TestARuleWhoseIndexIsBeingBuiltIsEvaluatedForEachObject(t *testing.T) {
	f := newShelf(t)
	former := f.open(store.Open, store.Options{})
	for i := range 9 {
		save(t, former, fmt.Sprint("b", i), fmt.Sprintf(`{"public":%t}`, i%3 == 0))
	}
	s := f.open(store.OpenOnline,
		store.Options{Indexes: indexesOn("public"), Policy: compile(t, policy.Rules{List: "object.public == true"})})
	for range 2 {
		l, err := s.List(as(t.Context(), "ada"), store.ListOptions{Explain: true})
		if err != nil || !slices.Equal(listedUUIDs(l), []string{"b0", "b3", "b6"}) {
			t.Errorf("%v, %v", listedUUIDs(l), err)
		}
		if building, _ := s.Building(t.Context()); (l.Plan.Rule == "forEach") != (len(building) > 0) {
			t.Errorf("%v are being built, and the rule is evaluated %s", building, l.Plan.Rule)
		}
		build(t, s)
	}
}

func TestInDevelopmentAListWhoseIndexIsBeingBuiltReadsAllObjects(t *testing.T) {
	f := newShelf(t)
	former := f.open(store.Open, store.Options{})
	save(t, former, "b", `{"year":1}`)
	save(t, former, "a", `{"year":2}`)
	s := f.open(store.OpenOnline, store.Options{Indexes: indexesOn("year"), Unindexed: true})
	l, err := s.List(t.Context(), store.ListOptions{Sort: "year"})
	if err != nil || !slices.Equal(listedUUIDs(l), []string{"b", "a"}) ||
		!strings.Contains(l.Warning, "is being built") {
		t.Errorf("%v, %q, %v", listedUUIDs(l), l.Warning, err)
	}
	l, err = s.List(t.Context(), store.ListOptions{Sort: "title"})
	if err != nil || !strings.Contains(l.Warning, `Declare stores.Books.indexes: ["title"]`) {
		t.Errorf("%q, %v", l.Warning, err)
	}
	build(t, s)
	if l, err = s.List(t.Context(), store.ListOptions{Sort: "year"}); err != nil || l.Warning != "" {
		t.Errorf("%q, %v", l.Warning, err)
	}
}

func linked(s *store.Store, ctx context.Context) (uuids []string, err error) {
	for o, err := range s.Linked(ctx, "author", "lem", 1) {
		if err != nil {
			return uuids, err
		}
		uuids = append(uuids, o.UUID)
	}
	return uuids, nil
}

// Workers rely on finding all objects: they get an error while some may be missing.
func TestObjectsAreNotFoundByAnIndexThatIsBeingBuilt(t *testing.T) {
	f := newShelf(t)
	former := f.open(store.Open, store.Options{})
	save(t, former, "a", `{"author":"lem"}`)
	save(t, former, "b", `{"author":"lem"}`)
	o := store.Options{Maps: []store.Mapping{{Source: "Books", Target: "Authors", Key: "author"}}, IndexBinaries: true}
	s := f.open(store.OpenOnline, o)
	if _, err := s.Mutate(t.Context(), "a", func(store.Stored) (store.Mutation, error) {
		return store.Mutation{Fields: covers(t, "h1")}, nil
	}); err != nil {
		t.Fatal(err)
	}
	_, err := linked(s, t.Context())
	wantBuilding(t, err, "the index author of Books is being built")
	for _, err := range s.WithBinary(t.Context(), "binary", "h1", 1) {
		wantBuilding(t, err, "the index binary of Books is being built")
	}
	build(t, s)
	if got, err := linked(s, t.Context()); err != nil || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%v, %v", got, err)
	}
	// Something without the index writes while objects are being searched.
	n := 0
	var last error
	for o, err := range s.WithBinary(t.Context(), "binary", "h1", 1) {
		if n++; err == nil && o.UUID == "a" {
			save(t, f.open(store.OpenOnline, store.Options{}), "c", `{}`)
		}
		last = err
	}
	if n != 2 {
		t.Errorf("%d were found", n)
	}
	wantBuilding(t, last, "the index binary of Books is being built")
}

// Another process that does not have an index, or has built it, is noticed.
func TestWhatOtherProcessesDoToAnIndexIsNoticed(t *testing.T) {
	store.AskIndexesAlways(t)
	f := newShelf(t)
	s := f.open(store.Open, store.Options{Indexes: indexesOn("year")})
	save(t, s, "a", `{"year":1}`)
	save(t, f.open(store.OpenOnline, store.Options{}), "b", `{"year":2}`)
	_, err := s.List(t.Context(), store.ListOptions{Sort: "year"})
	wantBuilding(t, err, "the index year of Books is being built")
	build(t, f.open(store.OpenOnline, store.Options{Indexes: indexesOn("year")}))
	if got := indexedUUIDs(t, s, store.ListOptions{Sort: "year"}); !slices.Equal(got, []string{"a", "b"}) {
		t.Error(got)
	}
}

// Requests that wait for an answer share the next one.
func TestIndexesAreAskedForRarely(t *testing.T) {
	f := newShelf(t)
	var asked atomic.Int64
	s, err := store.Open(t.Context(), askedBackend{f, &asked},
		store.Options{Name: "Books", Outbox: &outbox{}, Indexes: indexesOn("year")})
	if err != nil {
		t.Fatal(err)
	}
	before := asked.Load()
	for range 100 {
		indexedUUIDs(t, s, store.ListOptions{Sort: "year"})
	}
	if n := asked.Load() - before; n > 1 {
		t.Errorf("100 lists have asked %d times", n)
	}
}

type askedBackend struct {
	driver.Backend
	asked *atomic.Int64
}

func (b askedBackend) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := b.Backend.Open(ctx, spec)
	return askedStore{s, b.asked}, err
}

type askedStore struct {
	driver.Store
	asked *atomic.Int64
}

func (s askedStore) Building(ctx context.Context) ([]driver.Build, error) {
	s.asked.Add(1)
	return s.Store.Building(ctx)
}

func TestReconfiguredChangesIndexes(t *testing.T) {
	store.AskIndexesAlways(t)
	f := newShelf(t)
	s := f.open(store.Open, store.Options{Indexes: indexesOn("author", "year")})
	save(t, s, "a", `{"author":"lem","year":1961}`)
	opened := f.opened
	same := f.reconfigured(s, store.Options{Indexes: indexesOn("year", "author"), MaxSize: 1000})
	if f.opened != opened || same.Indexes() != s.Indexes() {
		t.Error("the same indexes are opened again")
	}
	other := f.reconfigured(same, store.Options{
		Indexes: indexesOn("year", "title"), IndexBinaries: true,
		Maps: []store.Mapping{{Source: "Books", Target: "Authors", Key: "author"}},
	})
	if names, err := other.Building(t.Context()); err != nil || !slices.Equal(names, []string{"title"}) {
		t.Errorf("%q are being built, %v", names, err)
	}
	if got := indexedUUIDs(t, other, store.ListOptions{Sort: "year"}); len(got) != 1 {
		t.Errorf("by an index that stays: %v", got)
	}
	// Requests in flight go on with the former one, and both write.
	_, _ = s.Building(t.Context())
	s.Indexes().Succeed(same.Indexes())
	s.Indexes().Succeed(other.Indexes())
	save(t, s, "b", `{"author":"lem","year":1962}`)
	save(t, other, "c", `{"author":"lem","year":1963}`)
	if _, err := s.Update(t.Context(), parse(t, `{"year":1964}`),
		store.UpdateOptions{UUID: "c", Patch: true}); err != nil {
		t.Error(err)
	}
	if got := indexedUUIDs(t, s, store.ListOptions{Filter: `author == "lem"`}); len(got) < 2 {
		t.Errorf("by the index that is removed: %v", got)
	}
	build(t, other)
	if got, err := linked(other, t.Context()); err != nil || !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("%v, %v", got, err)
	}
	if err := other.Indexes().Release(t.Context()); err != nil {
		t.Error(err)
	}
	again := f.reconfigured(other, store.Options{Indexes: indexesOn("author", "year")})
	_, err := again.List(t.Context(), store.ListOptions{Sort: "author"})
	wantBuilding(t, err, "the index author of Books is being built")
	build(t, again)
	if got := indexedUUIDs(t, again, store.ListOptions{Sort: "author"}); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Error(got)
	}
}

func TestReconfiguredFailsAndChangesNothing(t *testing.T) {
	f := newShelf(t)
	s := f.open(store.Open, store.Options{Indexes: indexesOn("year"), Unique: [][]string{{"slug"}}})
	s.Claims().Trust(true)
	save(t, s, "a", `{"year":1,"slug":"a"}`)
	f.refuses = true
	for _, o := range []store.Options{{Indexes: indexesOn("author"), Unique: [][]string{{"slug"}}},
		{Indexes: indexesOn("year"), Unique: [][]string{{"title"}}}} {
		o.Name = "Books"
		if _, err := s.Reconfigured(t.Context(), f, o); !errors.Is(err, errs.Unavailable) {
			t.Errorf("the backend is down: %v", err)
		}
	}
	f.refuses = false
	save(t, s, "b", `{"year":2,"slug":"b"}`)
	if _, err := s.Save(t.Context(), parse(t, `{"slug":"a"}`), "c"); !errors.Is(err, errs.Taken) {
		t.Errorf("a value is taken: %v", err)
	}
	if got := indexedUUIDs(t, s, store.ListOptions{Sort: "year"}); !slices.Equal(got, []string{"a", "b"}) {
		t.Error(got)
	}
}

// A store that was opened with other indexes, and has not been written to, changes nothing: the reload may fail
// afterwards.
func TestAStoreThatIsNotUsedLeavesIndexesComplete(t *testing.T) {
	store.AskIndexesAlways(t)
	f := newShelf(t)
	s := f.open(store.Open, store.Options{Indexes: indexesOn("year")})
	save(t, s, "a", `{"year":1}`)
	f.reconfigured(s, store.Options{})
	if got := indexedUUIDs(t, s, store.ListOptions{Sort: "year"}); !slices.Equal(got, []string{"a"}) {
		t.Error(got)
	}
}

// The claims of a constraint that is added, removed, or comes back are not trusted before they are collected. Those of
// the same constraints stay trusted.
func TestReconfiguredChangesUniqueFields(t *testing.T) {
	f := newShelf(t)
	slug, both := [][]string{{"slug"}}, [][]string{{"isbn"}, {"slug"}}
	s := f.open(store.Open, store.Options{Unique: both, CollectWait: -1})
	s.Claims().Trust(true)
	save(t, s, "a", `{"slug":"x","isbn":"1"}`)
	if !f.reconfigured(s, store.Options{Unique: [][]string{{"slug"}, {"isbn"}}}).Claims().Trusted() {
		t.Error("the same constraints are not trusted")
	}
	fewer := f.reconfigured(s, store.Options{Unique: slug})
	if fewer.Claims().Trusted() {
		t.Error("the claims are trusted although a constraint was removed")
	}
	save(t, fewer, "b", `{"isbn":"2"}`) // which nothing claims
	again := f.reconfigured(fewer, store.Options{Unique: both, CompleteClaims: true})
	if again.Claims().Trusted() {
		t.Error("claims are trusted that were not kept up to date")
	}
	if _, err := again.Save(t.Context(), parse(t, `{"isbn":"2"}`), "c"); !errors.Is(err, errs.Unavailable) {
		t.Errorf("a value is given before the claims are collected: %v", err)
	}
	for _, uuid := range []string{"a", "b"} {
		if _, taken, err := again.Claims().Make(t.Context(), uuid); err != nil || len(taken) > 0 {
			t.Errorf("%v, %v", taken, err)
		}
	}
	again.Claims().Trust(true)
	if _, err := again.Save(t.Context(), parse(t, `{"isbn":"2"}`), "c"); !errors.Is(err, errs.Taken) {
		t.Errorf("a value is given twice: %v", err)
	}
	none := f.reconfigured(again, store.Options{})
	if none.Claims() != nil {
		t.Error("there are claims without constraints")
	}
	if f.reconfigured(none, store.Options{Unique: both}).Claims().Trusted() {
		t.Error("claims are trusted that were not kept up to date")
	}
}

// Until requests of the configuration before have ended, one of them may be the first that writes without an index
// which the next configuration has: a list sees that at once.
func TestAfterAReloadListsNoticeWritesOfTheConfigurationBefore(t *testing.T) {
	f := newShelf(t)
	first := f.open(store.Open, store.Options{Indexes: indexesOn("year")})
	save(t, first, "a", `{"year":1}`)
	without := f.reconfigured(first, store.Options{}) // which has not written yet
	again := f.reconfigured(without, store.Options{Indexes: indexesOn("year")})
	if got := indexedUUIDs(t, again, store.ListOptions{Sort: "year"}); !slices.Equal(got, []string{"a"}) {
		t.Error(got)
	}
	save(t, without, "b", `{"year":2}`)
	_, err := again.List(t.Context(), store.ListOptions{Sort: "year"})
	wantBuilding(t, err, "the index year of Books is being built")
	build(t, again)
	again.Indexes().Settle()
	if got := indexedUUIDs(t, again, store.ListOptions{Sort: "year"}); !slices.Equal(got, []string{"a", "b"}) {
		t.Error(got)
	}
}
