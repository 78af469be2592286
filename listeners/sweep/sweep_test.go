package sweep_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"belfry/listeners/sweep"
	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/object"
)

func TestContentsGoWithTheirLastRecord(t *testing.T) {
	for name, act := range map[string]func(w *world) error{
		"a deletion": func(w *world) error {
			_, err := w.Delete(t.Context(), place("Books", "b", 0), hashOf("a"))
			return err
		},
		"a replacement":          func(w *world) error { return put(t.Context(), w.Service, place("Books", "b", 0), "new") },
		"the object's deletion":  func(w *world) error { return w.set.Store("Books").Delete(t.Context(), "b", 0) },
		"a deletion by a worker": func(w *world) error { return w.set.Store("Books").Delete(asCascade(t.Context()), "b", 0) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{})
			w.save("Books", "b", "a")
			w.save("Shelves", "s", "other")
			w.hear()
			w.noted(0)
			w.must(act(w))
			w.hear()
			w.noted(1)
			left := []string{"other"}
			if name == "a replacement" {
				left = append(left, "new")
			}
			w.later(59 * time.Minute)
			w.keeps(append(left, "a")...)
			w.later(2 * time.Minute)
			w.keeps(left...)
			w.noted(0)
			if n := w.worker.Deleted(); n != 1 {
				t.Errorf("%d contents were deleted", n)
			}
		})
	}
}

func asCascade(ctx context.Context) context.Context {
	return store.WithCall(ctx, store.Call{Origin: event.OriginCascade})
}

func TestContentsStayForOtherRecords(t *testing.T) {
	w := newWorld(t, options{})
	w.save("Books", "b", "a", "a", "c")
	w.save("Shelves", "s", "c")
	_, err := w.Delete(t.Context(), place("Books", "b", 0), hashOf("a"))
	w.must(err)
	_, err = w.Delete(t.Context(), place("Books", "b", 1), hashOf("c"))
	w.must(err)
	w.hear()
	w.noted(2)
	w.later(2 * time.Hour)
	w.keeps("a", "c")
	w.noted(0)
	w.must(w.set.Store("Books").Delete(t.Context(), "b", 0))
	w.hear()
	w.later(2 * time.Hour)
	w.keeps("c")
	w.noted(0)
}

// A content that comes back within the grace stays; its grace begins anew when
// it goes once more.
func TestTheGraceBeginsWithTheLastRecord(t *testing.T) {
	w := newWorld(t, options{})
	w.save("Books", "b", "a")
	remove := func() {
		_, err := w.Delete(t.Context(), place("Books", "b", 0), hashOf("a"))
		w.must(err)
		w.hear()
	}
	remove()
	w.later(50 * time.Minute)
	w.add("Books", "b", "a")
	w.later(50 * time.Minute)
	w.keeps("a")
	remove()
	w.later(50 * time.Minute)
	w.keeps("a")
	w.later(20 * time.Minute)
	w.keeps()
}

// An upload that found its content there made it young: a deletion that was
// told before does not take it.
func TestWhatWasModifiedLatelyStays(t *testing.T) {
	w := newWorld(t, options{})
	w.save("Books", "b", "a")
	w.must(w.set.Store("Books").Delete(t.Context(), "b", 0))
	w.hear()
	w.ahead.Add(int64(2 * time.Hour))
	fresh := time.Now().Add(2 * time.Hour)
	staged, err := w.Storage.Stage(t.Context())
	w.must(err)
	defer staged.Discard()
	_, err = staged.Write([]byte("a"))
	w.must(err)
	w.must(staged.Commit(t.Context(), hashOf("a")))
	w.touch("a", fresh)
	w.later(0)
	w.keeps("a")
	w.noted(1)
	w.later(61 * time.Minute)
	w.keeps()
}

func TestEventsThatSayNothing(t *testing.T) {
	w := newWorld(t, options{})
	w.save("Books", "b", "a")
	for _, e := range []event.Envelope{
		{Event: event.StoreDeleted, Object: []byte(`{"photos":[{"hash":"` + hashOf("a") + `"}]}`)},
		{Event: event.StoreDeleted, Binaries: []byte(`{"photos":"files"}`)},
		{Event: event.StoreDeleted, Binaries: []byte(`{"photos":"files"}`), Object: []byte(`{"photos":[{"hash":5},{},7]}`)},
		{Event: event.StoreDeleted, Binaries: []byte(`{"photos":"others"}`), Object: []byte(`{"photos":[{"hash":"x"}]}`)},
		{Event: event.BinaryDeleted, Binaries: []byte(`{"photos":"files"}`)},
		{Event: event.BinaryUploaded, Binaries: []byte(`{"photos":"files"}`), Record: []byte(`{"hash":"` + hashOf("a") + `"}`)},
		{Event: event.StoreUpdated, Binaries: []byte(`{"photos":"files"}`), Object: []byte(`{"photos":[{"hash":"` + hashOf("a") + `"}]}`)},
	} {
		w.must(w.worker.Handle(t.Context(), &e))
	}
	w.noted(0)
}

func TestFilters(t *testing.T) {
	w := newWorld(t, options{})
	want := []string{"events.*.Binary.Deleted.*.*", "events.*.Binary.Uploaded.*.*", "events.*.Store.Deleted.Books.*", "events.*.Store.Deleted.Shelves.*"}
	if got := w.worker.Filters(); !slices.Equal(got, want) {
		t.Errorf("the filters are %q", got)
	}
	idle, err := sweep.NewWorker(nil, slog.New(slog.DiscardHandler))
	w.must(err)
	w.must(idle.Pass(t.Context()))
	if got := idle.Filters(); len(got) > 0 {
		t.Errorf("without services the filters are %q", got)
	}
}

func TestStoresMustKnowWhatTheyHold(t *testing.T) {
	w := newWorld(t, options{})
	w.set.Store("Books").Holding = false
	if _, err := sweep.NewWorker([]*binary.Service{w.Service}, slog.New(slog.DiscardHandler)); !errors.Is(err, errs.Invalid) {
		t.Errorf("the error is %v", err)
	}
	w.set.Store("Books").Holding = true
}

func TestManyContentsAreSwept(t *testing.T) {
	const n = 450
	w := newWorld(t, options{})
	w.save("Books", "b", "a")
	for i := range n {
		w.must(w.Note(t.Context(), hashOf(fmt.Sprint(i))))
	}
	w.must(w.Note(t.Context(), hashOf("a")))
	w.noted(n + 1)
	w.later(2 * time.Hour)
	w.noted(0)
	w.keeps("a")
}

// What can't be deleted now is left for a lease, and does not keep the others.
func TestADeletionThatFailsIsMadeLater(t *testing.T) {
	w := newWorld(t, options{})
	w.save("Books", "b", "a", "c")
	w.must(w.set.Store("Books").Delete(t.Context(), "b", 0))
	w.hear()
	w.storage.refuse("a", errs.New(errs.Unavailable, "away"))
	w.ahead.Add(int64(2 * time.Hour))
	if err := w.worker.Due(t.Context()); !errors.Is(err, errs.Unavailable) {
		t.Errorf("the error is %v", err)
	}
	w.keeps("a")
	w.noted(1)
	w.storage.refuse("", nil)
	w.later(0)
	w.keeps("a")
	w.later(6 * time.Minute)
	w.keeps()
	w.noted(0)
}

// What other processes left half done is gone on with.
func TestHalfDoneWorkIsFinished(t *testing.T) {
	for _, state := range []binary.State{binary.Condemned, binary.Deleting} {
		w := newWorld(t, options{})
		w.save("Books", "b", "kept", "gone")
		w.must(w.set.Store("Books").Delete(t.Context(), "b", 0))
		w.save("Books", "c", "kept")
		for _, text := range []string{"kept", "gone"} {
			o := object.Object{}
			o.Set("service", "files")
			o.Set("hash", hashOf(text))
			o.Set("state", state)
			o.Set("due", "2020-01-01T00:00:00.000000Z")
			_, err := w.Contents.Save(t.Context(), o, "files."+hashOf(text))
			w.must(err)
		}
		w.later(2 * time.Hour)
		w.keeps("kept")
		w.noted(0)
	}
}

func TestPassFindsWhatNoEventToldOf(t *testing.T) {
	w := newWorld(t, options{})
	w.save("Books", "b", "a", "c", "d")
	w.must(w.set.Store("Books").Delete(t.Context(), "b", 0))
	w.save("Books", "e", "d")
	w.outbox.take() // and is lost
	w.must(w.worker.Pass(t.Context()))
	w.noted(0)
	w.keeps("a", "c", "d")
	w.age()
	w.must(w.worker.Pass(t.Context()))
	w.noted(2)
	w.later(2 * time.Hour)
	w.keeps("d")
	w.noted(0)
}

func TestPassRemovesWhatUploadsLeft(t *testing.T) {
	w := newWorld(t, options{})
	staged, err := w.Storage.Stage(t.Context())
	w.must(err)
	defer staged.Discard()
	w.abandon()
	w.must(w.worker.Pass(t.Context()))
	if n := w.stages(); n != 2 {
		t.Errorf("%d stages are there, want the one in use and a young one", n)
	}
	w.ahead.Add(int64(48 * time.Hour))
	w.must(w.worker.Pass(t.Context()))
	if n := w.stages(); n != 1 {
		t.Errorf("%d stages are there, want the one in use", n)
	}
}

// lagging is a backend whose indexes show a write only after a while.
type lagging struct{ driver.Backend }

const lag = 200 * time.Millisecond

func (l lagging) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := l.Backend.Open(ctx, spec)
	return &laggingStore{Store: s, written: map[string]time.Time{}}, err
}

type laggingStore struct {
	driver.Store
	mu      sync.Mutex
	written map[string]time.Time
}

func (s *laggingStore) Settle() time.Duration { return lag }

func (s *laggingStore) Put(ctx context.Context, w driver.Write) error {
	err := s.Store.Put(ctx, w)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written[w.UUID] = time.Now()
	return err
}

func (s *laggingStore) Query(ctx context.Context, q driver.Query) (driver.Page, error) {
	page, err := s.Store.Query(ctx, q)
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.Index == "binary" {
		page.Records = slices.DeleteFunc(page.Records, func(r driver.Record) bool { return time.Since(s.written[r.UUID]) < lag })
	}
	return page, err
}

func TestIndexesAreWaitedFor(t *testing.T) {
	w := newWorld(t, options{backend: func(b driver.Backend) driver.Backend { return lagging{b} }})
	w.must(w.Note(t.Context(), hashOf("a")))
	w.ahead.Add(int64(2 * time.Hour))
	w.save("Books", "b", "a")
	w.age()
	w.later(0)
	w.keeps("a")
	w.noted(0)
}

func TestDueEndsWithItsContext(t *testing.T) {
	w := newWorld(t, options{})
	w.must(w.Note(t.Context(), hashOf("a")))
	w.ahead.Add(int64(2 * time.Hour))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, act := range []func(context.Context) error{w.worker.Due, w.worker.Pass} {
		if err := act(ctx); errs.KindOf(err) != errs.Canceled && !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v", err)
		}
	}
}
