package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/operations/migrate"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
)

func TestRecordsAreCopiedUnchanged(t *testing.T) {
	w := newFixture(t)
	w.put(w.from, "no-events", 10, `{"uuid":"no-events"}`)
	w.put(w.from, "gone", 11, `{"uuid":"gone"}`)
	w.put(w.from, "gone", 12, "")
	w.publish(w.from)
	w.put(w.from, "published", 20, `{"n":1}`)
	w.put(w.from, "published", 35, `{"n":2}`, "of a binary", "of another")
	w.put(w.from, "deleted-with-event", 21, `{}`)
	w.put(w.from, "deleted-with-event", 22, "")
	if r := w.moved(2, 3); r.Events != 6 {
		t.Errorf("%d events, want 6", r.Events)
	}
	w.wantRecord(w.to, "no-events", 10, `{"uuid":"no-events"}`)
	w.wantRecord(w.to, "published", 35, `{"n":2}`)
	w.wantRecord(w.to, "deleted-with-event", 22, "")
	w.wantNone(w.to, "gone")
	for _, uuid := range []string{"no-events", "published", "deleted-with-event"} {
		if got, want := w.ids(w.to, uuid), w.ids(w.from, uuid); !slices.Equal(got, want) {
			t.Errorf("the events of %s are %q, want %q", uuid, got, want)
		}
	}
	for _, e := range w.pending(w.to) {
		if e.ID == "published@20" &&
			(e.Subject != "events.published" || string(e.Payload) != "payload of published@20") {
			t.Errorf("an event has become %+v", e)
		}
	}
	w.moved(2, 0) // again: nothing is left to do
	if got, want := w.ids(w.to, "published"), w.ids(w.from, "published"); !slices.Equal(got, want) {
		t.Errorf("after the second run the events are %q, want %q", got, want)
	}
}

func TestManyEventsOfOneRecord(t *testing.T) {
	w := newFixture(t)
	for i := range uint64(350) {
		w.put(w.from, "hot", 1000+i, fmt.Sprintf(`{"n":%d}`, i))
	}
	w.put(w.from, "dead", 50, `{}`)
	for i := range uint64(250) {
		w.put(w.from, "dead", 60+2*i, `{}`)
		w.put(w.from, "dead", 61+2*i, "")
	}
	w.moved(1, 2)
	w.wantRecord(w.to, "hot", 1349, `{"n":349}`)
	w.wantRecord(w.to, "dead", 61+2*249, "")
	for _, uuid := range []string{"hot", "dead"} {
		if got, want := w.ids(w.to, uuid), w.ids(w.from, uuid); !slices.Equal(got, want) {
			t.Errorf("%s has %d events, want %d in their order", uuid, len(got), len(want))
		}
	}
}

// TestInterruptedMigrationIsResumed interrupts a run, writes to the source, and runs
// again.
func TestInterruptedMigrationIsResumed(t *testing.T) {
	w := newFixture(t)
	const records = 1300 // several pages
	for i := range records {
		w.put(w.from, fmt.Sprintf("b%04d", i), 100, `{"n":1}`)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := migrate.Store(ctx, w.from, w.to, func(migrate.Progress) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want that it was canceled", err)
	}
	w.wantRecord(w.to, "b0000", 100, `{"n":1}`)
	w.wantNone(w.to, "b1299")

	w.put(w.from, "b0000", 101, `{"n":2}`) // its first event is still pending
	w.put(w.from, "b0000", 102, `{"n":3}`)
	w.put(w.from, "b0001", 101, "") // deleted, its event is published
	w.put(w.from, "b0002", 101, "") // deleted, its event is pending
	published := slices.DeleteFunc(w.pending(w.from), func(e driver.Pending) bool { return e.UUID != "b0001" })
	if err := w.from.Driver().Clear(t.Context(), published); err != nil {
		t.Fatal(err)
	}
	w.moved(records-2, records-500+3)
	w.wantRecord(w.to, "b0000", 102, `{"n":3}`)
	w.wantRecord(w.to, "b0001", 101, "")
	w.wantRecord(w.to, "b0002", 101, "")
	for _, uuid := range []string{"b0000", "b0002", "b0700"} {
		if got, want := w.ids(w.to, uuid), w.ids(w.from, uuid); !slices.Equal(got, want) {
			t.Errorf("the events of %s are %q, want %q", uuid, got, want)
		}
	}
	w.moved(records-2, 0)
}

func TestDestinationInUseIsAConflict(t *testing.T) {
	w := newFixture(t)
	w.put(w.from, "a", 10, `{"n":1}`)
	w.put(w.to, "a", 11, `{"n":2}`)
	w.publish(w.to)
	_, err := migrate.Store(t.Context(), w.from, w.to, nil)
	if !errors.Is(err, errs.Conflict) {
		t.Errorf("got %v, want a conflict", err)
	}
	w.wantRecord(w.to, "a", 11, `{"n":2}`)
	if ids := w.ids(w.to, "a"); len(ids) > 0 {
		t.Errorf("events were copied: %q", ids)
	}
}

func TestDifferencesAreReported(t *testing.T) {
	w := newFixture(t)
	w.put(w.from, "a", 10, `{"n":1}`)
	w.put(w.to, "a", 10, `{"n":2}`)
	w.put(w.to, "x", 5, `{}`)
	w.moved(1, 0, "a: different", "x: only in the destination")
	w.wantRecord(w.to, "x", 5, `{}`)
	w.wantRecord(w.to, "a", 10, `{"n":2}`)
	for i := range 150 {
		w.put(w.to, fmt.Sprintf("y%d", i), 5, `{}`)
	}
	if r := w.move(); len(r.Differences) != 100 || r.More != 52 {
		t.Errorf("%d differences are listed and %d more counted", len(r.Differences), r.More)
	}
}

// busy is a backend that throttles a number of calls.
type busy struct {
	driver.Backend
	times     atomic.Int32
	permanent bool // without RetryAfter
}

type busyStore struct {
	driver.Store
	*busy
}

func (b *busy) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := b.Backend.Open(ctx, spec)
	return busyStore{s, b}, err
}

func (b *busy) refuse() error {
	if b.times.Add(-1) < 0 {
		return nil
	}
	e := errs.New(errs.Unavailable, "overloaded")
	if !b.permanent {
		e.RetryAfter = time.Second
	}
	return errs.Wrap(e, errs.Unavailable, "busy")
}

func (s busyStore) Put(ctx context.Context, w driver.Write) error {
	if err := s.refuse(); err != nil {
		return err
	}
	return s.Store.Put(ctx, w)
}

func (s busyStore) Scan(ctx context.Context, after []byte, limit int) (driver.Page, error) {
	if err := s.refuse(); err != nil {
		return driver.Page{}, err
	}
	return s.Store.Scan(ctx, after, limit)
}

func TestTransientErrorsAreRetried(t *testing.T) {
	for _, permanent := range []bool{false, true} {
		backend, err := filestore.Open(t.TempDir(), filestore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = backend.Close() })
		b := &busy{Backend: backend, permanent: permanent}
		w := newFixture(t)
		if w.to, err = store.Open(t.Context(), b, store.Options{Name: "Books"}); err != nil {
			t.Fatal(err)
		}
		w.put(w.from, "a", 10, `{"n":1}`)
		b.times.Store(3)
		_, err = migrate.Store(t.Context(), w.from, w.to, nil)
		if permanent {
			if !errors.Is(err, errs.Unavailable) || b.times.Load() != 2 {
				t.Errorf("got %v after %d attempts, want one and its error", err, 3-b.times.Load())
			}
			continue
		}
		if err != nil {
			t.Error(err)
		}
		w.wantRecord(w.to, "a", 10, `{"n":1}`)
	}
}
