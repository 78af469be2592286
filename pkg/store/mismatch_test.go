package store_test

import (
	"errors"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// A write that meets another revision than it expected learns the present one, and whether only workers have written
// since: also when the clock was set back, or several writes have the same time.
func TestAMismatchSaysWhoHasWrittenSince(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s, _ := open(t, store.Options{Arrays: []string{"books"}, Now: func() time.Time { return now }})
	first, err := s.Save(t.Context(), parse(t, `{"title":"1"}`), "a")
	if err != nil {
		t.Fatal(err)
	}
	get := func() store.Stored {
		t.Helper()
		o, err := s.Get(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	work := func() {
		t.Helper()
		_, err := store.NewWorker(s).CompareAndSet(t.Context(), get(), object.Object{"books": []byte(`[]`)})
		if err != nil {
			t.Fatal(err)
		}
	}
	update := func(expected uint64) error {
		_, err := s.Update(t.Context(), parse(t, `{"title":"2"}`), store.UpdateOptions{UUID: "a", If: expected})
		return err
	}
	check := func(expected uint64, onlyWorkers bool) {
		t.Helper()
		for name, err := range map[string]error{
			"update": update(expected), "delete": s.Delete(t.Context(), "a", expected),
		} {
			var e *errs.Error
			if !errors.Is(err, errs.Mismatch) || !errors.As(err, &e) || e.At == nil {
				t.Fatalf("%s: %v", name, err)
			}
			if e.At.Now != get().Revision || e.At.OnlyWorkers != onlyWorkers {
				t.Errorf("%s: %+v, want the revision %d, and %v", name, *e.At, get().Revision, onlyWorkers)
			}
		}
	}
	work()
	work()
	check(first.Revision, true)
	check(first.Revision-1, false) // nobody can have read it
	check(get().Revision+1, false)

	second := get().Revision
	now = now.Add(-time.Hour)
	if err := update(0); err != nil {
		t.Fatal(err)
	}
	third := get().Revision
	work()
	check(first.Revision, false)
	check(second, false)
	check(third, true)
	_, err = s.Mutate(t.Context(), "a", func(store.Stored) (store.Mutation, error) {
		return store.Mutation{Fields: object.Object{"title": []byte(`"3"`)}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	check(third, false)
}
