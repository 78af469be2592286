package store_test

import (
	"errors"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
)

// A migration must not undo what was written here since.
func TestCopyRecordKeepsANewerRecord(t *testing.T) {
	s, _ := open(t, store.Options{})
	w := store.NewWorker(s)
	here := save(t, s, "a", `{"n":2}`)
	older := driver.Record{UUID: "a", Revision: here.Revision - 1, Body: []byte(`{"uuid":"a","n":1}`)}
	_, err := w.CopyRecord(t.Context(), older, nil)
	kind(t, err, errs.Conflict)
	if errors.Is(err, store.ErrContended) {
		t.Error("the caller is asked to try again, which can't succeed")
	}
	got, err := s.Get(t.Context(), "a")
	if err != nil || got.Revision != here.Revision || string(got.Body) != string(here.Body) {
		t.Errorf("got %s at %d, %v", got.Body, got.Revision, err)
	}
	if err := s.Delete(t.Context(), "a", 0); err != nil {
		t.Fatal(err)
	}
	_, err = w.CopyRecord(t.Context(), older, nil)
	kind(t, err, errs.Conflict)
	if exists, err := s.Exists(t.Context(), "a"); exists || err != nil {
		t.Errorf("a deleted object exists again: %v, %v", exists, err)
	}
}
