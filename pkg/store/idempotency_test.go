package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// onced is the context of a client whose write may be repeated.
func onced(t *testing.T, once store.Idempotency) context.Context {
	t.Helper()
	return store.WithCall(t.Context(),
		store.Call{Client: true, Trusted: true, Origin: event.OriginBus, Idempotency: &once})
}

// ahead is a revision that no write of a test has reached.
func ahead() uint64 { return store.RevisionAt(time.Now().Add(time.Minute)) }

func TestIdempotentSave(t *testing.T) {
	s, out := open(t, store.Options{})
	once := store.Idempotency{ID: "k", Revision: ahead()}
	first, err := s.Save(onced(t, once), parse(t, `{"title":"Emma"}`), "emma")
	if err != nil || first.Revision != once.Revision || strings.Contains(string(first.Body), "_requests") {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := s.Save(onced(t, once), parse(t, `{"title":"Emma"}`), "emma")
	if err != nil || string(again.Body) != string(first.Body) || len(out.events) != 1 {
		t.Errorf("%s, %v, %d events", again.Body, err, len(out.events))
	}
	if _, err := s.Save(onced(t, store.Idempotency{ID: "other", Revision: ahead() + 1}), parse(t, `{}`),
		"emma"); !errors.Is(err, errs.Exists) {
		t.Error(err)
	}
	// However late it arrives, it must not replace a later tombstone.
	if err := s.Delete(t.Context(), "emma", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Save(onced(t, once), parse(t, `{}`), "emma"); !errors.Is(err, store.ErrSuperseded) ||
		!errors.Is(err, errs.Conflict) {
		t.Error(err)
	}
	if _, err := s.Save(onced(t, store.Idempotency{ID: "later", Revision: ahead() + 2}), parse(t, `{}`),
		"emma"); err != nil {
		t.Error(err)
	}
}

func TestIdempotentUpdate(t *testing.T) {
	s, out := open(t, store.Options{})
	stored, err := s.Save(t.Context(), parse(t, `{"title":"Emma"}`), "emma")
	if err != nil {
		t.Fatal(err)
	}
	once := store.Idempotency{ID: "k", Incarnation: store.Incarnation(stored.Body)}
	update := func() (store.Stored, error) {
		return s.Update(onced(t, once), parse(t, `{"year":1815}`),
			store.UpdateOptions{UUID: "emma", If: stored.Revision})
	}
	first, err := update()
	if err != nil || strings.Contains(string(first.Body), "_requests") {
		t.Fatal(string(first.Body), err)
	}
	if _, err := s.Update(t.Context(), parse(t, `{"title":"E"}`), store.UpdateOptions{UUID: "emma"}); err != nil {
		t.Fatal(err)
	}
	again, err := update() // although its precondition does not hold any more
	if err != nil || !strings.Contains(string(again.Body), `"E"`) || len(out.events) != 3 {
		t.Errorf("%s, %v, %d events", again.Body, err, len(out.events))
	}
	if err := s.Delete(t.Context(), "emma", 0); err != nil {
		t.Fatal(err)
	}
	for range 2 { // deleted, and then another incarnation
		if _, err := update(); !errors.Is(err, store.ErrSuperseded) {
			t.Error(err)
		}
		_, _ = s.Save(t.Context(), parse(t, `{}`), "emma")
	}
}

func TestIdempotentDelete(t *testing.T) {
	s, out := open(t, store.Options{})
	stored, err := s.Save(t.Context(), parse(t, `{}`), "emma")
	if err != nil {
		t.Fatal(err)
	}
	stale := store.Idempotency{ID: "k", Revision: stored.Revision, Incarnation: store.Incarnation(stored.Body)}
	if err := s.Delete(onced(t, stale), "emma", 0); !errors.Is(err, store.ErrStaleRevision) {
		t.Error(err)
	}
	once := store.Idempotency{ID: "k", Revision: ahead(), Incarnation: store.Incarnation(stored.Body)}
	for range 2 {
		if err := s.Delete(onced(t, once), "emma", stored.Revision); err != nil {
			t.Error(err)
		}
	}
	moved := store.Idempotency{ID: "k", Revision: ahead() + 1, Earlier: []uint64{1, once.Revision},
		Incarnation: once.Incarnation}
	if err := s.Delete(onced(t, moved), "emma", 0); err != nil || len(out.events) != 2 {
		t.Errorf("%v, %d events", err, len(out.events))
	}
	if err := s.Delete(onced(t, store.Idempotency{ID: "k", Revision: ahead() + 2, Incarnation: once.Incarnation}),
		"emma", 0); !errors.Is(err, store.ErrSuperseded) {
		t.Error(err)
	}
	left, deleted, err := s.Deleted(t.Context(), "emma")
	if err != nil || !deleted || left.Revision != once.Revision {
		t.Errorf("%+v, %t, %v", left, deleted, err)
	}
	if _, err := s.Save(t.Context(), parse(t, `{}`), "emma"); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(onced(t, once), "emma", 0); !errors.Is(err, store.ErrSuperseded) {
		t.Errorf("another life: %v", err)
	}
}

func TestObjectsDropCompletedAndOldRequests(t *testing.T) {
	now := time.Now()
	s, _ := open(t, store.Options{Now: func() time.Time { return now }})
	stored, err := s.Save(t.Context(), parse(t, `{}`), "emma")
	if err != nil {
		t.Fatal(err)
	}
	answered := func(_ context.Context, id string) (bool, error) { return id != "open", nil }
	update := func(id string) int {
		once := store.Idempotency{ID: id, Incarnation: store.Incarnation(stored.Body), Completed: answered}
		if _, err := s.Update(onced(t, once), parse(t, `{}`), store.UpdateOptions{UUID: "emma"}); err != nil {
			t.Fatal(err)
		}
		kept, err := s.Get(t.Context(), "emma")
		if err != nil {
			t.Fatal(err)
		}
		requests, err := object.Decode(object.Field(kept.Body, "_requests"))
		if err != nil || requests[id] == nil || requests["open"] == nil {
			t.Fatalf("%s: %v", requests.Encode(), err)
		}
		return len(requests)
	}
	most := update("open")
	for i := range 300 {
		most = max(most, update(fmt.Sprint("k", i)))
	}
	if most != 64 {
		t.Errorf("the object held %d requests", most)
	}
	now = now.Add(store.IdempotencyRetention + time.Second)
	requests := func() int {
		once := store.Idempotency{ID: "late", Incarnation: store.Incarnation(stored.Body)}
		if _, err := s.Update(onced(t, once), parse(t, `{}`), store.UpdateOptions{UUID: "emma"}); err != nil {
			t.Fatal(err)
		}
		kept, err := s.Get(t.Context(), "emma")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(object.Field(kept.Body, "_requests")), ":")
	}
	if n := requests(); n != 1 {
		t.Errorf("%d requests are held after a day", n)
	}
}

func TestNoEvents(t *testing.T) {
	s, out := open(t, store.Options{NoEvents: true})
	stored, err := s.Save(t.Context(), parse(t, `{"n":1}`), "a")
	if err != nil {
		t.Fatal(err)
	}
	if stored, err = store.NewWorker(s).CompareAndSet(t.Context(), stored,
		object.Object{"n": []byte("2")}); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "a", stored.Revision); err != nil {
		t.Fatal(err)
	}
	pending, _, err := s.Driver().Pending(t.Context(), nil, 10)
	if len(out.events) > 0 || len(pending) > 0 || err != nil {
		t.Errorf("%d events, %d wait, %v", len(out.events), len(pending), err)
	}
}
