package copies

import (
	"errors"
	"slices"
	"testing"
	"time"

	"belfry/pkg/event"
	"belfry/pkg/mapping"
	"belfry/pkg/store"
	"belfry/test/model"
)

// Copies are behind from the time of an event until its work is done: here, or by another process.
func TestWorkIsInFlightUntilItIsDone(t *testing.T) {
	backend := model.NewMemory()
	open := func(o store.Options) *store.Store {
		s, err := store.Open(t.Context(), backend, o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	set := store.NewSet([]*store.Store{
		open(store.Options{Name: "Authors", CopiedFrom: []string{"name"}}),
		open(store.Options{Name: "Recipes",
			References: []store.Reference{{Field: "author", Target: "Authors"}, {Field: "editor", Target: "Authors"}},
			Copies: []store.Copy{{Field: "chef", Reference: "author", Source: "Authors", From: "name"},
				{Field: "editorBio", Reference: "editor", Source: "Authors", From: "bio"}}}),
	}, []store.Mapping{{Source: "Recipes", Target: "Authors", Key: "author"},
		{Source: "Recipes", Target: "Authors", Key: "editor"}})
	w := NewWorker(set, Options{})
	t.Cleanup(w.Close)
	h := &InFlight{}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	changed := func(id string, after time.Duration, fields ...string) *event.Envelope {
		e := &event.Envelope{ID: id, Event: event.StoreUpdated, Store: "Authors", UUID: "a", Changed: fields}
		e.Time = at.Add(after).Format(time.RFC3339Nano)
		return e
	}
	want := func(what string, behind ...string) {
		t.Helper()
		var is []string
		for of, since := range h.Since() {
			is = append(is, of.String()+" "+since.Sub(at).String())
		}
		slices.Sort(is)
		if !slices.Equal(is, behind) {
			t.Errorf("%s: behind are %q, want %q", what, is, behind)
		}
	}
	end := h.Begin(w, changed("1", 0, "age"), 1)
	want("an event that changes no copy")
	end(nil)
	first, second := h.Begin(w, changed("2", time.Second, "name"), 2), h.Begin(w, changed("3", 2*time.Second, "name"), 3)
	bio := h.Begin(w, changed("4", 3*time.Second, "bio"), 4)
	want("events in flight", "Recipes.author 1s", "Recipes.editor 3s")
	first(nil)
	bio(nil)
	want("the older one is done", "Recipes.author 2s")

	second(errors.New("the backend is down"))
	h.Settle(&Position{Acknowledged: 2, Left: true}, nil)
	if attempts, parts := h.Waiting(); !attempts || parts {
		t.Errorf("waiting: %v, %v", attempts, parts)
	}
	want("it waits for another attempt", "Recipes.author 2s")
	h.Settle(&Position{Acknowledged: 3, Left: true}, nil)
	want("another process has done it")

	long := changed("5", time.Minute, "name")
	end = h.Begin(w, long, 5)
	left := Unfinished{}
	left.add(long, set.CopiesFrom("Authors")[0], &mapping.Rest{After: []byte("x")})
	h.HandedOver(left[0])
	end(nil)
	h.Settle(&Position{}, nil)
	want("a part is left", "Recipes.author 1m0s")
	end = h.Begin(w, left[0], 0)
	want("the part is in flight", "Recipes.author 1m0s")
	h.HandedOver(left[0])
	end(nil)
	h.Settle(nil, &Position{Delivered: 7, Acknowledged: 6, Left: true})
	want("the next part is in flight in another process", "Recipes.author 1m0s")
	h.Settle(nil, &Position{Delivered: 9, Acknowledged: 7, Left: true, Pending: true})
	want("that one has done it")
}
