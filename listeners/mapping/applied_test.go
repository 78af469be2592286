package mapping_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"belfry/listeners/mapping"
	"belfry/pkg/event"
	encoded "belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/test/model"
)

// cascadeOfThree is the scenario in which a request waits for writes of workers.
const cascadeOfThree = "a cascade three deep"

// awaitedScenarios have requests that wait for the work of their writes. Those with many states have no
// crashes but in a soak run.
func awaitedScenarios() map[string]model.Scenario {
	x := model.Save("Books", "x", `{"author":"a","title":"1"}`)
	pages := append([]store.Mapping{{Source: "Pages", Target: "Books", Key: "book", Array: "pages", Cascade: true}},
		cascades(books(0))...)
	return map[string]model.Scenario{
		"a change is reverted": {
			Crash: true, MaxCrashes: 1,
			Mappings:      books(0),
			Setup:         join(authors(), x),
			AtomicClients: true,
			Clients: [][]model.Op{{
				model.Update("Books", "x", `{"title":"2"}`), model.Await(model.Update("Books", "x", `{"title":"1"}`)),
			}},
		},
		"a condition that is reverted": {
			Crash: true, MaxCrashes: 1,
			Mappings:      publishedBooks(0),
			Setup:         join(authors(), model.Save("Books", "x", `{"author":"a","published":true}`)),
			AtomicClients: true,
			Clients: [][]model.Op{{
				model.Update("Books", "x", `{"published":false}`),
				model.Await(model.Update("Books", "x", `{"published":true}`)),
			}},
		},
		"a source is created and deleted": {
			Crash: true, MaxCrashes: 1,
			Mappings:      books(0),
			Setup:         authors(),
			AtomicClients: true,
			Clients:       [][]model.Op{{x, model.Await(model.Delete("Books", "x"))}},
		},
		"a source moves back": {
			Mappings:      books(0),
			Setup:         join(authors(), x),
			AtomicClients: true,
			Clients: [][]model.Op{{
				model.Update("Books", "x", `{"author":"b"}`), model.Await(model.Update("Books", "x", `{"author":"a"}`)),
			}},
		},
		"a source is deleted while its target is created": {
			Mappings:      books(0),
			Setup:         []model.Op{x},
			AtomicClients: true,
			Clients: [][]model.Op{
				{model.Save("Authors", "a", `{}`)},
				{model.Await(model.Delete("Books", "x"))},
			},
		},
		"a source is deleted while an array is refilled with it": {
			Mappings:      books(1),
			Setup:         join(authors(), x, model.Save("Books", "y", `{"author":"a"}`)),
			AtomicClients: true,
			Clients: [][]model.Op{
				{model.Delete("Books", "x")},
				{model.Await(model.Delete("Books", "y"))},
			},
		},
		createdTarget: {
			Mappings:      books(0),
			Setup:         []model.Op{x},
			AtomicClients: true,
			Clients: [][]model.Op{
				{model.Await(model.Save("Authors", "a", `{}`))},
				{model.Update("Books", "x", `{"title":"2"}`), model.Update("Books", "x", `{"title":"1"}`)},
			},
		},
		cascadeOfThree: {
			Crash: true, MaxCrashes: 1,
			Mappings:      pages,
			Setup:         join(authors(), x, model.Save("Pages", "p", `{"book":"x"}`)),
			AtomicClients: true,
			Clock:         true,
			OneHandler:    true,
			Clients:       [][]model.Op{{model.Await(model.Delete("Authors", "a"))}},
		},
	}
}

const createdTarget = "a target is created"

// isRightWithoutFence has the scenarios in which no worker can have read the target before the write.
var isRightWithoutFence = map[string]bool{createdTarget: true, cascadeOfThree: true}

// checkApplied checks what a request can rely on once its wait is over: a target that has existed since
// its write shows each object that was written for it as it was then or as it has been since, a target
// that it created shows all objects so, and no object is left that its cascade had to delete.
func checkApplied(ctx context.Context, set *store.Set, a *model.Applied) error {
	for i := range set.Mappings() {
		m := &set.Mappings()[i]
		sources, err := objects(ctx, set.Store(m.Source))
		if err != nil {
			return err
		}
		targets, err := objects(ctx, set.Store(m.Target))
		if err != nil {
			return err
		}
		for target := range targets {
			shown := a.Caused(m.Source)
			if a.Created && a.Store == m.Target && a.UUID == target {
				shown = slices.AppendSeq(shown, maps.Keys(sources))
			}
			if a.Lasting(m.Target, target) {
				if err := checkShown(ctx, set, m, a, target, shown); err != nil {
					return err
				}
			}
		}
		for uuid, o := range sources {
			for _, deleted := range a.Caused(m.Target) {
				states := a.Since(m.Target, deleted)
				if m.Cascade && states[0].Deleted && names(m, o, deleted) && len(a.Since(m.Source, uuid)) == 1 {
					return fmt.Errorf("the reply says applied, and %s/%s is left, which names %s/%s", m.Source, uuid,
						m.Target, deleted)
				}
			}
		}
	}
	return nil
}

// checkShown checks the entries of some objects in a target.
func checkShown(ctx context.Context, set *store.Set, m *store.Mapping, a *model.Applied, target string,
	sources []string) error {
	t, err := set.Store(m.Target).Get(ctx, target)
	if err != nil {
		return err
	}
	entries, size := map[string][]byte{}, 0
	encoded.Elements(encoded.Field(t.Body, m.Array), func(entry []byte) bool {
		uuid, _ := encoded.Text(encoded.Field(entry, "uuid"))
		entries[uuid] = entry
		size += len(entry) + 1
		return true
	})
	for _, source := range sources {
		isEntry := func(r driver.Record) bool {
			return bytes.Equal(m.Entry(source, r.Body, m.TargetOf(target, t.Body)), entries[source])
		}
		refused := entries[source] == nil && m.Full(len(entries), size)
		if !refused && !slices.ContainsFunc(a.Since(m.Source, source), isEntry) {
			return fmt.Errorf("the reply says applied, and %s/%s.%s shows %q for %s/%s, which was so before the "+
				"write only",
				m.Target, target, m.Array, entries[source], m.Source, source)
		}
	}
	return nil
}

// TestAnOlderEntryDoesNotComeBackAfterARequestHasWaited has two workers handle two changes of an object. The first
// has read the object before the second change, which takes the first one back, so that the second worker finds
// the array as it should be.
func TestAnOlderEntryDoesNotComeBackAfterARequestHasWaited(t *testing.T) {
	t.Parallel()
	backend := &model.Hooked{Backend: model.NewMemory()}
	set, err := model.OpenSet(t.Context(), backend, books(10), func(o *store.Options) { o.Locker = model.NoLock{} })
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, set: set, worker: mapping.NewWorker(set, mapping.Options{})}
	t.Cleanup(w.worker.Close)
	other := mapping.NewWorker(set, mapping.Options{})
	t.Cleanup(other.Close)
	w.save("Authors", "a", `{}`)
	w.deliver(w.save("Books", "x", `{"author":"a","title":"1"}`))
	changed := w.change("x", `{"title":"2"}`)

	applied := false
	backend.BeforePut = func(ctx context.Context, _ string, _ driver.Write) error {
		backend.BeforePut = nil // the first worker has read the object
		reverted := w.change("x", `{"title":"1"}`)
		reverted.Ctx.Wait = "applied.test.1"
		if err := other.Handle(ctx, reverted); err != nil {
			t.Error(err)
		}
		applied = true
		backend.BeforePut = func(context.Context, string, driver.Write) error {
			if a := w.get("Authors", "a"); !bytes.Contains(a, []byte(`"1"`)) {
				t.Errorf("after the wait the author is %s", a)
			}
			return nil
		}
		return nil
	}
	if err := w.worker.Handle(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if !applied {
		t.Error("the first worker wrote nothing")
	}
	w.verify()
}

func (w *world) get(name, uuid string) []byte {
	w.Helper()
	x, err := w.set.Store(name).Get(w.Context(), uuid)
	if err != nil {
		w.Fatal(err)
	}
	return x.Body
}

// change updates a book and returns the event.
func (w *world) change(uuid, body string) *event.Envelope {
	w.Helper()
	o, err := encoded.Parse([]byte(body))
	if err != nil {
		w.Fatal(err)
	}
	x, err := w.set.Store("Books").Update(w.Context(), o, store.UpdateOptions{UUID: uuid})
	if err != nil {
		w.Fatal(err)
	}
	return &event.Envelope{Event: event.StoreUpdated, Store: "Books", UUID: uuid, Revision: x.Revision, Object: x.Body,
		Origin: event.OriginGo}
}
