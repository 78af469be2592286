package cascade_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"belfry/listeners/cascade"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/mapping"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/test/model"
)

// fixture is people and their pets: the deletion of a boss cascades to the staff,
// and that of an owner to the pets. Guests have no cascade.
type fixture struct {
	*testing.T
	set    *store.Set
	worker *cascade.Worker

	deletions atomic.Int64
	remaining atomic.Int64 // how many more deletions succeed; below 0 all do
}

func mappings() []store.Mapping {
	return []store.Mapping{
		{Source: "People", Target: "People", Key: "boss", Array: "staff", Cascade: true, Limit: 10_000},
		{Source: "Pets", Target: "People", Key: "owner", Array: "pets", Cascade: true, Limit: 10_000},
		{Source: "Guests", Target: "People", Key: "host", Array: "guests", Limit: 10_000},
	}
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{T: t}
	f.remaining.Store(-1)
	backend := &model.Hooked{Backend: model.NewMemory(), BeforePut: f.put}
	set, err := model.OpenSet(t.Context(), backend, mappings(), nil)
	if err != nil {
		t.Fatal(err)
	}
	f.set, f.worker = set, cascade.NewWorker(set, cascade.Options{})
	return f
}

func (f *fixture) put(_ context.Context, _ string, w driver.Write) error {
	if w.Body != nil {
		return nil
	}
	if f.remaining.Load() == 0 {
		return errs.New(errs.Unavailable, "down")
	}
	f.remaining.Add(-1)
	f.deletions.Add(1)
	return nil
}

func (f *fixture) save(name, uuid, key, target string) {
	f.Helper()
	if _, err := f.set.Store(name).Save(f.Context(), object.Object{key: object.AppendString(nil, target)},
		uuid); err != nil {
		f.Fatal(err)
	}
}

// delete deletes an object and returns the event.
func (f *fixture) delete(name, uuid string) *event.Envelope {
	f.Helper()
	if err := f.set.Store(name).Delete(f.Context(), uuid, 0); err != nil {
		f.Fatal(err)
	}
	t, _, err := f.set.Store(name).Deleted(f.Context(), uuid)
	if err != nil {
		f.Fatal(err)
	}
	return &event.Envelope{Event: event.StoreDeleted, Store: name, UUID: uuid, Revision: t.Revision}
}

func (f *fixture) handle(e *event.Envelope) {
	f.Helper()
	if err := f.worker.Handle(f.Context(), e); err != nil {
		f.Fatal(err)
	}
}

// settle handles every deletion that is pending in the stores, and those that
// these cause, until none is left, and returns how many it handled.
func (f *fixture) settle() (handled int) {
	f.Helper()
	for {
		all := f.pending()
		if len(all) == 0 {
			return handled
		}
		for _, e := range all {
			f.handle(e)
		}
		handled += len(all)
	}
}

// pending returns the deletions that are pending in the stores, and clears their events.
func (f *fixture) pending() (deletions []*event.Envelope) {
	f.Helper()
	for _, name := range []string{"People", "Pets", "Guests"} {
		s := f.set.Store(name).Driver()
		pending, _, err := s.Pending(f.Context(), nil, 100_000)
		if err != nil {
			f.Fatal(err)
		}
		for _, p := range pending {
			var e event.Envelope
			if err := json.Unmarshal(p.Payload, &e); err != nil {
				f.Fatal(err)
			}
			if e.Event == event.StoreDeleted {
				deletions = append(deletions, &e)
			}
		}
		if err := s.Clear(f.Context(), pending); err != nil {
			f.Fatal(err)
		}
	}
	return deletions
}

func (f *fixture) exists(name, uuid string) bool {
	f.Helper()
	found, err := f.set.Store(name).Exists(f.Context(), uuid)
	if err != nil {
		f.Fatal(err)
	}
	return found
}

func (f *fixture) count(name string) int64 {
	f.Helper()
	n, _, err := f.set.Store(name).Count(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	return n
}

func TestTenThousandChildrenAreDeleted(t *testing.T) {
	const n = 10_000
	f := newFixture(t)
	f.save("People", "p", "name", "p")
	f.save("People", "other", "name", "other")
	for i := range n {
		f.save("Pets", fmt.Sprint("pet", i), "owner", "p")
	}
	f.save("Pets", "stays", "owner", "other")
	f.handle(f.delete("People", "p"))
	if left := f.count("Pets"); left != 1 || !f.exists("Pets", "stays") {
		t.Errorf("%d pets are left, want the other's one", left)
	}
	if d := f.deletions.Load(); d != n+1 {
		t.Errorf("%d deletions, want each child's and its target's", d)
	}
}

func TestDeletionsCascadeToAnyDepth(t *testing.T) {
	const depth = 100
	f := newFixture(t)
	f.save("People", "p0", "name", "first")
	for i := 1; i < depth; i++ {
		f.save("People", fmt.Sprint("p", i), "boss", fmt.Sprint("p", i-1))
	}
	f.save("Pets", "pet", "owner", fmt.Sprint("p", depth-1))
	f.delete("People", "p0")
	if n := f.settle(); n != depth+1 {
		t.Errorf("%d deletions were handled, want %d", n, depth+1)
	}
	if f.count("People") != 0 || f.count("Pets") != 0 {
		t.Errorf("%d people and %d pets are left", f.count("People"), f.count("Pets"))
	}
}

func TestCascadeTerminatesInACycle(t *testing.T) {
	f := newFixture(t)
	f.save("People", "a", "boss", "c")
	f.save("People", "b", "boss", "a")
	f.save("People", "c", "boss", "b")
	f.save("People", "self", "boss", "self")
	f.delete("People", "a")
	f.delete("People", "self")
	f.settle()
	if n := f.count("People"); n != 0 {
		t.Errorf("%d people are left", n)
	}
}

func TestWithoutCascadeObjectsStay(t *testing.T) {
	f := newFixture(t)
	f.save("People", "p", "name", "p")
	f.save("Guests", "g", "host", "p")
	f.handle(f.delete("People", "p"))
	if !f.exists("Guests", "g") {
		t.Error("a guest was deleted with the host")
	}
}

func TestInterruptedCascadeResumes(t *testing.T) {
	f := newFixture(t)
	f.save("People", "p", "name", "p")
	for i := range 300 {
		f.save("Pets", fmt.Sprint("pet", i), "owner", "p")
	}
	e := f.delete("People", "p")
	f.remaining.Store(100)
	if err := f.worker.Handle(t.Context(), e); !errors.Is(err, errs.Unavailable) {
		t.Fatalf("error %v, want that the store is unavailable", err)
	}
	if n := f.count("Pets"); n == 0 || n == 300 {
		t.Fatalf("%d pets are left, want some: the interruption came too early or too late", n)
	}
	f.remaining.Store(-1)
	f.handle(e)
	if n := f.count("Pets"); n != 0 {
		t.Errorf("%d pets are left", n)
	}
	f.handle(e)
	if d := f.deletions.Load(); d != 301 {
		t.Errorf("%d deletions, want 301: the redelivered event had nothing to delete", d)
	}
}

func TestObjectsWrittenSinceTheTargetWasCreatedAgainStay(t *testing.T) {
	f := newFixture(t)
	f.save("People", "p", "name", "p")
	f.save("Pets", "old", "owner", "p")
	f.save("Pets", "changed", "owner", "p")
	e := f.delete("People", "p")
	f.save("People", "p", "name", "again")
	f.save("Pets", "new", "owner", "p")
	if _, err := f.set.Store("Pets").Update(t.Context(), object.Object{"name": []byte(`"x"`)},
		store.UpdateOptions{UUID: "changed"}); err != nil {
		t.Fatal(err)
	}
	f.handle(e)
	for uuid, stays := range map[string]bool{"old": false, "changed": true, "new": true} {
		if f.exists("Pets", uuid) != stays {
			t.Errorf("%s: exists %v, want %v", uuid, !stays, stays)
		}
	}
}

// A worker that writes an array of a child changes its revision, not its time.
func TestChildWhoseArrayWasWrittenSinceIsDeleted(t *testing.T) {
	f := newFixture(t)
	f.save("People", "boss", "name", "boss")
	f.save("People", "p", "boss", "boss")
	e := f.delete("People", "boss")
	f.save("People", "boss", "name", "again")
	f.save("Pets", "pet", "owner", "p")
	reconciler := mapping.NewReconciler(f.set, mapping.Options{})
	if err := reconciler.Reconcile(t.Context(), f.set.MappingsFrom("Pets")[0], "p", []string{"pet"}); err != nil {
		t.Fatal(err)
	}
	f.handle(e)
	if f.exists("People", "p") {
		t.Error("the child of the target's former incarnation is left")
	}
}

func TestDeletionsCarryTheCascadesOriginAndActor(t *testing.T) {
	f := newFixture(t)
	f.save("People", "p", "name", "p")
	f.save("Pets", "pet", "owner", "p")
	e := f.delete("People", "p")
	actor := "u"
	e.Actor = &actor
	f.handle(e)
	pending, _, err := f.set.Store("Pets").Driver().Pending(t.Context(), nil, 10)
	if err != nil || len(pending) != 2 {
		t.Fatalf("%d events are pending, want two; error %v", len(pending), err)
	}
	var deleted event.Envelope
	if err := json.Unmarshal(pending[1].Payload, &deleted); err != nil {
		t.Fatal(err)
	}
	if deleted.Origin != event.OriginCascade || deleted.Actor == nil || *deleted.Actor != actor {
		t.Errorf("the event is %s", pending[1].Payload)
	}
}

func TestObjectCreatedAfterTheGracePeriodStays(t *testing.T) {
	for age, exists := range map[time.Duration]bool{mapping.GracePeriod / 2: false, 2 * mapping.GracePeriod: true} {
		f := newFixture(t)
		f.save("People", "p", "name", "p")
		e := f.delete("People", "p")
		f.save("Pets", "pet", "owner", "p")
		pet, err := f.set.Store("Pets").Get(t.Context(), "pet")
		if err != nil {
			t.Fatal(err)
		}
		e.Revision = mapping.CreatedAt(pet) - uint64(age.Microseconds())
		f.handle(e)
		if f.exists("Pets", "pet") != exists {
			t.Errorf("created %v after the deletion: exists %v, want %v", age, !exists, exists)
		}
	}
}

// laggingBackend has indexes that return nothing until the lag has been waited
// for: to the first query.
type laggingBackend struct{ driver.Backend }

func (b laggingBackend) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := b.Backend.Open(ctx, spec)
	return &laggingStore{Store: s}, err
}

type laggingStore struct {
	driver.Store
	queried atomic.Bool
}

func (s *laggingStore) IndexLag() time.Duration { return time.Nanosecond }

func (s *laggingStore) Query(ctx context.Context, q driver.Query) (driver.Page, error) {
	if !s.queried.Swap(true) {
		return driver.Page{}, nil
	}
	return s.Store.Query(ctx, q)
}

func TestCascadeQueriesALaggingIndexAgain(t *testing.T) {
	set, err := model.OpenSet(t.Context(), laggingBackend{model.NewMemory()}, []store.Mapping{
		{Source: "Pets", Target: "People", Key: "owner", Array: "pets", Cascade: true, Limit: 10},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t, set: set, worker: cascade.NewWorker(set, cascade.Options{})}
	f.save("People", "p", "name", "p")
	f.save("Pets", "pet", "owner", "p")
	f.handle(f.delete("People", "p"))
	if f.exists("Pets", "pet") {
		t.Error("the pet that the index did not return at first is left")
	}
}

// setClock gives the fixture stores with a clock that the test sets.
func (f *fixture) setClock(now *time.Time) {
	f.Helper()
	backend := &model.Hooked{Backend: model.NewMemory(), BeforePut: f.put}
	set, err := model.OpenSet(f.Context(), backend, []store.Mapping{
		{Source: "Pets", Target: "People", Key: "owner", Array: "pets", Cascade: true, Limit: 10_000},
	}, func(o *store.Options) { o.Now = func() time.Time { return *now } })
	if err != nil {
		f.Fatal(err)
	}
	f.set, f.worker = set, cascade.NewWorker(set, cascade.Options{Now: func() time.Time { return *now }})
}

// An object that was created while the clock was an hour ahead is deleted with its target all the same.
func TestObjectOfAClockThatWasSetBackIsDeletedWithItsTarget(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	f := newFixture(t)
	f.setClock(&now)
	f.save("People", "ann", "name", "Ann")
	now = now.Add(time.Hour)
	f.save("Pets", "rex", "owner", "ann")
	now = now.Add(-time.Hour)
	f.handle(f.delete("People", "ann"))
	if f.exists("Pets", "rex") {
		t.Error("the pet of a deleted owner is left")
	}
}

// A target that was written while the clock was an hour ahead has a deletion whose revision is later than what is
// written next. Objects of its next incarnation stay, also when the worker handles the deletion late.
func TestObjectsOfANewIncarnationStayAfterTheClockWasSetBack(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	f := newFixture(t)
	f.setClock(&now)
	now = now.Add(time.Hour)
	f.save("People", "ann", "name", "Ann")
	now = now.Add(-time.Hour)
	f.save("Pets", "old", "owner", "ann")
	now = now.Add(time.Second)
	deleted := f.delete("People", "ann")
	deleted.Time = object.FormatTime(now)
	now = now.Add(time.Second)
	f.save("People", "ann", "name", "Ann")
	f.save("Pets", "new", "owner", "ann")
	f.handle(deleted)
	if f.exists("Pets", "old") || !f.exists("Pets", "new") {
		t.Errorf("the old pet exists: %v; the new one: %v", f.exists("Pets", "old"), f.exists("Pets", "new"))
	}
}
