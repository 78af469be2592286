package sse_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/api/sse"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
	"belfry/test/kit"
)

// Events of an object are for those who may get it, by what its references name: in the event and at present. A field
// whose rule follows a reference is left out in the same way.
func TestEventsFollowLinkedObjects(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	backend := &unreliable{Backend: w.backend}
	w.backend = backend
	books := w.open("Books", nil)
	references := policy.Rules{References: []string{"recipe"}, Get: "linked.recipe.published"}
	rules, problems := policy.Compile(references)
	fields, wrong := policy.CompileFields(references, map[string]policy.FieldRule{"tip": {Read: "linked.recipe.tips"}})
	if len(problems)+len(wrong) > 0 {
		t.Fatal(problems, wrong)
	}
	notes, err := store.Open(t.Context(), w.backend, store.Options{
		Name: "Notes", Policy: rules, Fields: fields, Outbox: w, ClientUUIDs: true,
		References: []store.Reference{{Field: "recipe", Target: "Books"}},
	})
	w.must(err)
	w.stores["Notes"] = notes
	store.NewSet([]*store.Store{books, notes}, nil)
	w.save("Books", "open", `{"published":true,"tips":true}`)
	w.save("Books", "shy", `{"published":true}`)
	w.save("Books", "closed", `{"published":false}`)
	w.start()
	for _, step := range [][2]string{
		{"a", `{"recipe":"open","tip":"a"}`}, {"b", `{"recipe":"closed"}`}, {"c", `{}`}, {"d", `{"recipe":"gone"}`},
		{"e", `{"recipe":"open"}`}, {"e", `{"recipe":"closed"}`},
		{"f", `{"recipe":"closed"}`}, {"f", `{"recipe":"open"}`},
		{"g", `{"recipe":"open"}`}, {"g", ""}, {"h", `{"recipe":"shy","tip":"h"}`},
	} {
		if step[1] == "" {
			w.delete("Notes", step[0])
		} else {
			w.save("Notes", step[0], step[1])
		}
	}
	received := func(until, viewer string) (all []string, tips string) {
		t.Helper()
		w.save("Books", until, `{}`)
		e := w.listen(sse.Subscription{After: "0"}, user(viewer))
		kit.WaitUntil(t, func() error {
			if list := e.received(); len(list) == 0 || list[len(list)-1].data["uuid"] != until {
				return errors.New("the last event has not arrived")
			}
			return nil
		})
		for _, m := range e.received() {
			if m.data["store"] != "Notes" {
				continue
			}
			all = append(all, strings.TrimPrefix(m.what(), "Store."))
			if o, ok := m.data["object"].(map[string]any); ok && o["tip"] != nil {
				tips += o["tip"].(string)
			}
		}
		return all, tips
	}
	want := []string{
		"Saved Notes a", "Updated Notes f", "Saved Notes g", "Deleted Notes g", "Saved Notes h",
	}
	got, tips := received("end", "ann")
	if !slices.Equal(got, want) || tips != "a" {
		t.Errorf("received %v, with the tips %q", got, tips)
	}
	// Clients that receive the same event share what is read for them.
	var all []*testClient
	for i := range 20 {
		all = append(all, w.listen(sse.Subscription{}, user(fmt.Sprint("user-", i))))
	}
	backend.mu.Lock()
	backend.gets = 0
	backend.mu.Unlock()
	w.save("Notes", "z", `{"recipe":"shy"}`)
	for _, e := range all {
		e.receives("Store.Saved Notes z")
	}
	backend.mu.Lock()
	if backend.gets > len(all)/2 {
		t.Errorf("%d clients caused %d reads", len(all), backend.gets)
	}
	backend.mu.Unlock()
	// What has lost its right in the meantime is not sent from the log either.
	w.save("Books", "open", `{"published":false}`)
	w.start()
	if got, _ := received("later", "ann"); !slices.Equal(got, []string{"Saved Notes h", "Saved Notes z"}) {
		t.Errorf("received %v", got)
	}
}
