package mapping_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/mapping"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/test/model"
)

// fixture is authors, their books, and a reconciler whose driver calls a test
// can intercept: each test is one interleaving. All interleavings of small
// scenarios are explored in listeners/mapping.
type fixture struct {
	*testing.T
	backend    *model.Hooked
	set        *store.Set
	mapping    *store.Mapping
	reconciler *mapping.Reconciler
	now        time.Time
	announced  []event.Name
}

// HasInterest makes the fixture a subscriber of all announcements.
func (f *fixture) HasInterest(event.Name) bool { return true }

// Live keeps an announcement.
func (f *fixture) Live(name event.Name, _ []byte) { f.announced = append(f.announced, name) }

func newFixture(t *testing.T, limit int) *fixture {
	t.Helper()
	f := &fixture{T: t, backend: &model.Hooked{Backend: model.NewMemory()}, now: time.Unix(1_900_000_000, 0)}
	set, err := model.OpenSet(t.Context(), f.backend, []store.Mapping{{
		Source: "Books", Target: "Authors", Key: "author", Array: "books", Fields: []string{"title"}, Limit: limit,
		Cascade: true,
	}}, func(o *store.Options) {
		o.Locker, o.Announce, o.Now = model.NoLock{}, f, func() time.Time { return f.now }
	})
	f.must(err)
	f.set, f.mapping = set, &set.Mappings()[0]
	f.reconciler = mapping.NewReconciler(set, mapping.Options{})
	return f
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) save(name, uuid, body string) {
	f.Helper()
	o, err := object.Parse([]byte(body))
	f.must(err)
	_, err = f.set.Store(name).Save(f.Context(), o, uuid)
	f.must(err)
}

func (f *fixture) update(name, uuid, body string) {
	f.Helper()
	o, err := object.Parse([]byte(body))
	f.must(err)
	_, err = f.set.Store(name).Update(f.Context(), o, store.UpdateOptions{UUID: uuid})
	f.must(err)
}

func (f *fixture) delete(name, uuid string) {
	f.Helper()
	f.must(f.set.Store(name).Delete(f.Context(), uuid, 0))
}

func (f *fixture) reconcile(books ...string) {
	f.Helper()
	f.must(f.reconciler.Reconcile(f.Context(), f.mapping, "a", books))
}

// onPut calls do once, before the next write to a store.
func (f *fixture) onPut(name string, do func()) {
	f.backend.BeforePut = func(_ context.Context, store string, _ driver.Write) error {
		if store == name {
			f.backend.BeforePut = nil
			do()
		}
		return nil
	}
}

// field asserts a field of the author a.
func (f *fixture) field(name, want string) {
	f.Helper()
	a, err := f.set.Store("Authors").Get(f.Context(), "a")
	f.must(err)
	if got := string(object.Field(a.Body, name)); got != want {
		f.Errorf("%s is %s, want %s", name, got, want)
	}
}

// Somebody writes the target more often than all its objects can be read: a round for all of them would never end.
func TestATargetThatIsWrittenAllTheTimeIsFilled(t *testing.T) {
	for name, fill := range map[string]func(f *fixture) error{
		"fill":     func(f *fixture) error { return f.reconciler.Fill(t.Context(), f.mapping, "a", nil) },
		"backfill": func(f *fixture) error { return f.reconciler.Backfill(t.Context(), f.mapping, "a") },
	} {
		f := newFixture(t, 10_000)
		f.save("Authors", "a", `{}`)
		for n := range 900 {
			f.save("Books", fmt.Sprint("b", n), `{"author":"a"}`)
		}
		reads, writes := 0, 0
		f.backend.BeforeGet = func(_ context.Context, store, _ string) error {
			if store == "Books" {
				reads++
			}
			if reads > 0 && reads%700 == 0 && store == "Books" {
				if writes++; writes > 20 {
					t.Fatalf("%s: a round is repeated for ever", name)
				}
				f.update("Authors", "a", fmt.Sprintf(`{"written":%d}`, writes))
			}
			return nil
		}
		f.must(fill(f))
		f.backend.BeforeGet = nil
		a, err := f.set.Store("Authors").Get(t.Context(), "a")
		f.must(err)
		var entries []json.RawMessage
		f.must(json.Unmarshal(object.Field(a.Body, "books"), &entries))
		if len(entries) != 900 || writes == 0 {
			t.Errorf("%s: %d entries beside %d writes", name, len(entries), writes)
		}
	}
}

// Events that are handled together may fill an array, be refused an entry, and make room, in this order.
func TestRefusedSourceGetsTheRoomThatALaterOneLeaves(t *testing.T) {
	for _, sources := range [][]string{{"x", "y", "v"}, {"x", "y", "v", "w"}} { // below the limit, and at it
		f := newFixture(t, 3)
		f.save("Authors", "a", `{}`)
		for _, book := range append([]string{"u"}, sources[2:]...) {
			f.save("Books", book, `{"author":"a"}`)
			f.reconcile(book)
			if book != "u" {
				f.update("Books", book, `{"author":"b"}`)
			}
		}
		f.save("Books", "x", `{"author":"a"}`)
		f.save("Books", "y", `{"author":"a"}`)
		f.reconcile(sources...)
		f.field("books", `[{"uuid":"u"},{"uuid":"x"},{"uuid":"y"}]`)
	}
}

func TestSourceThatChangesDuringTheWriteIsReadAgain(t *testing.T) {
	f := newFixture(t, 10)
	f.save("Authors", "a", `{}`)
	f.save("Books", "x", `{"author":"a","title":"1"}`)
	f.onPut("Authors", func() { f.update("Books", "x", `{"title":"2"}`) })
	f.reconcile("x")
	f.field("books", `[{"uuid":"x","title":"2"}]`)
}

func TestTargetThatChangesBeforeTheWriteIsReadAgain(t *testing.T) {
	f := newFixture(t, 10)
	f.save("Authors", "a", `{}`)
	f.save("Books", "x", `{"author":"a"}`)
	f.save("Books", "y", `{"author":"a"}`)
	f.onPut("Authors", func() { f.reconcile("y") })
	f.reconcile("x")
	f.field("books", `[{"uuid":"y"},{"uuid":"x"}]`)
}

func TestReconcileIsIdempotent(t *testing.T) {
	f := newFixture(t, 10)
	f.save("Authors", "a", `{}`)
	f.save("Books", "x", `{"author":"a"}`)
	f.reconcile("x", "x")
	f.backend.BeforePut = func(_ context.Context, name string, _ driver.Write) error {
		t.Errorf("wrote to %s, though nothing changed", name)
		return nil
	}
	f.reconcile("x")
	f.field("books", `[{"uuid":"x"}]`)
}

func TestBackfillAddsSourcesOlderThanTheTarget(t *testing.T) {
	f := newFixture(t, 10)
	f.save("Books", "x", `{"author":"a"}`)
	f.save("Authors", "a", `{}`)
	f.must(f.reconciler.Backfill(t.Context(), f.mapping, "a"))
	f.field("books", `[{"uuid":"x"}]`)
}

func TestReadsOfWorkersAreNotAnnounced(t *testing.T) {
	f := newFixture(t, 10)
	f.save("Books", "x", `{"author":"a"}`)
	f.save("Authors", "a", `{}`)
	f.announced = nil
	f.must(f.reconciler.Backfill(t.Context(), f.mapping, "a"))
	f.reconcile("x")
	if slices.Contains(f.announced, event.StoreGet) {
		t.Errorf("announced: %v", f.announced)
	}
}

func TestBackfillReadsEveryPageOfTheIndex(t *testing.T) {
	const n = 501 // one more than a page
	f := newFixture(t, 1000)
	for i := range n {
		f.save("Books", fmt.Sprint("x", i), `{"author":"a"}`)
	}
	f.save("Authors", "a", `{}`)
	f.must(f.reconciler.Backfill(t.Context(), f.mapping, "a"))
	a, err := f.set.Store("Authors").Get(t.Context(), "a")
	f.must(err)
	if got := bytes.Count(object.Field(a.Body, "books"), []byte("uuid")); got != n {
		t.Errorf("%d entries, want %d", got, n)
	}
}

// A Backfill that fails after its write may leave the entry of an object that
// has changed since; the next one no longer finds that object in the index.
func TestBackfillRemovesEntriesOfAnInterruptedBackfill(t *testing.T) {
	f := newFixture(t, 10)
	f.save("Books", "x", `{"author":"a"}`)
	f.save("Authors", "a", `{}`)
	f.must(f.reconciler.Backfill(t.Context(), f.mapping, "a"))
	f.update("Books", "x", `{"author":null}`)
	f.must(f.reconciler.Backfill(t.Context(), f.mapping, "a"))
	f.field("books", `[]`)
}

// full is a fixture whose array is at its limit of one.
func full(t *testing.T) *fixture {
	f := newFixture(t, 1)
	f.save("Authors", "a", `{}`)
	f.save("Books", "x", `{"author":"a"}`)
	f.save("Books", "y", `{"author":"a"}`)
	f.reconcile("x")
	f.reconcile("y")
	f.field("books", `[{"uuid":"x"}]`)
	f.field("_overflow", `{"books":[]}`)
	return f
}

func TestRemovalRefillsAMarkedArray(t *testing.T) {
	f := full(t)
	f.save("Books", "z", `{"author":"a"}`)
	f.reconcile("z")
	f.delete("Books", "x")
	f.reconcile("x")
	f.field("books", `[{"uuid":"y"}]`)
	f.field("_overflow", `{"books":[]}`) // y is confirmed
	f.delete("Books", "y")
	f.reconcile("y")
	f.field("books", `[{"uuid":"z"}]`)
	f.delete("Books", "z")
	f.reconcile("z")
	f.field("books", `[]`)
	f.field("_overflow", "")
}

// The round that removes an entry of a full array must keep the mark: an object
// saved after its query found the array full, and its event is acknowledged.
func TestMarkStaysInTheRoundThatLeavesTheLimit(t *testing.T) {
	f := full(t)
	f.delete("Books", "x")
	f.delete("Books", "y")
	f.onPut("Authors", func() {
		f.save("Books", "z", `{"author":"a"}`)
		f.reconcile("z")
	})
	f.reconcile("x")
	f.field("books", `[{"uuid":"z"}]`)
}

// crash makes the reconciler fail in the middle of a removal that has refilled
// the array with y, while y is deleted and its event is acknowledged.
func crash(t *testing.T) *fixture {
	f := full(t)
	f.delete("Books", "x")
	f.onPut("Authors", func() {
		f.delete("Books", "y")
		f.reconcile("y")
		f.backend.BeforeGet = func(context.Context, string, string) error {
			return errs.New(errs.Unavailable,
				"crashed")
		}
	})
	if err := f.reconciler.Reconcile(t.Context(), f.mapping, "a", []string{"x"}); !errors.Is(err, errs.Unavailable) {
		t.Fatalf("error %v, want the crash", err)
	}
	f.backend.BeforeGet = nil
	return f
}

func TestRefilledEntryIsConfirmedAfterACrash(t *testing.T) {
	f := crash(t)
	f.field("books", `[{"uuid":"y"}]`)
	f.field("_overflow", `{"books":["y"]}`)
	f.reconcile("x") // the event is redelivered
	f.field("books", `[]`)
	f.field("_overflow", "")
}

func TestLoweredLimitTrimsAndMarksTheArray(t *testing.T) {
	f := newFixture(t, 2)
	f.save("Authors", "a", `{}`)
	f.save("Books", "x", `{"author":"a"}`)
	f.save("Books", "y", `{"author":"a"}`)
	f.reconcile("x", "y")
	f.mapping.Limit = 1
	f.reconcile("x")
	f.field("books", `[{"uuid":"x"}]`)
	f.field("_overflow", `{"books":[]}`)
}

func TestOnFullReportsEachRefusedObject(t *testing.T) {
	f := full(t)
	var refused []string
	f.reconciler = mapping.NewReconciler(f.set, mapping.Options{OnFull: func(m *store.Mapping, target string) {
		refused = append(refused, m.Target+"/"+target)
	}})
	f.reconcile("y")
	if len(refused) != 1 || refused[0] != "Authors/a" {
		t.Errorf("reported %v, want Authors/a once", refused)
	}
}

func TestWritesCarryTheMappingsOrigin(t *testing.T) {
	f := newFixture(t, 10)
	f.save("Authors", "a", `{}`)
	f.save("Books", "x", `{"author":"a"}`)
	var origin string
	f.backend.BeforePut = func(_ context.Context, _ string, w driver.Write) error {
		var e event.Envelope
		f.must(json.Unmarshal(w.Event.Payload, &e))
		origin = e.Origin
		return nil
	}
	f.reconcile("x")
	if origin != event.OriginMapping {
		t.Errorf("origin %q, want %q", origin, event.OriginMapping)
	}
}

// deletedTarget saves a book the given time after its author was deleted.
func deletedTarget(t *testing.T, after time.Duration) *fixture {
	f := newFixture(t, 10)
	f.save("Authors", "a", `{}`)
	f.delete("Authors", "a")
	f.now = f.now.Add(after)
	f.save("Books", "x", `{"author":"a"}`)
	return f
}

func (f *fixture) exists(want bool) {
	f.Helper()
	found, err := f.set.Store("Books").Exists(f.Context(), "x")
	f.must(err)
	if found != want {
		f.Errorf("x exists: %v, want %v", found, want)
	}
}

func TestOrphanIsDeletedWithinTheGracePeriodOnly(t *testing.T) {
	for after, exists := range map[time.Duration]bool{mapping.GracePeriod / 2: false, 2 * mapping.GracePeriod: true} {
		f := deletedTarget(t, after)
		f.reconcile("x")
		f.exists(exists)
	}
}

// The deletion of a target that was written while the clock was an hour ahead has a revision in the future: what is
// saved under its uuid counts as saved during the deletion until the clock is past that revision.
func TestOrphanOfATargetWrittenByAClockThatWasAheadIsDeletedUntilTheClockIsThere(t *testing.T) {
	for after, exists := range map[time.Duration]bool{time.Minute: false, time.Hour + 2*mapping.GracePeriod: true} {
		f := newFixture(t, 10)
		f.now = f.now.Add(time.Hour)
		f.save("Authors", "a", `{}`)
		f.now = f.now.Add(-time.Hour)
		f.delete("Authors", "a")
		f.now = f.now.Add(after)
		f.save("Books", "x", `{"author":"a"}`)
		f.reconcile("x")
		f.exists(exists)
	}
}

func TestOrphanStaysWithoutCascade(t *testing.T) {
	f := deletedTarget(t, 0)
	f.mapping.Cascade = false
	f.reconcile("x")
	f.exists(true)
}

func TestOrphanThatIsMovedBeforeItsDeletionStays(t *testing.T) {
	f := deletedTarget(t, 0)
	f.onPut("Books", func() { f.update("Books", "x", `{"author":"b"}`) })
	f.reconcile("x")
	f.exists(true)
}

func TestOrphanWhoseTargetIsCreatedAgainBeforeItsDeletionStays(t *testing.T) {
	f := deletedTarget(t, 0)
	f.onPut("Books", func() {
		f.save("Authors", "a", `{}`)
		f.update("Books", "x", `{"title":"2"}`)
	})
	f.reconcile("x")
	f.exists(true)
}
