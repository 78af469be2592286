package cascade_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"belfry/listeners/cascade"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/mapping"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/object"
	"belfry/test/model"
)

// house is people and their pets: a boss who goes takes the staff along, and
// the owner the pets. Guests stay.
type house struct {
	*testing.T
	set    *store.Set
	worker *cascade.Worker

	deletions atomic.Int64
	patience  atomic.Int64 // how many more deletions succeed; below 0 all do
}

func newHouse(t *testing.T) *house {
	h := &house{T: t}
	h.patience.Store(-1)
	backend := &model.Hooked{Backend: model.NewMemory(), BeforePut: h.put}
	set, err := model.OpenSet(t.Context(), backend, []store.Mapping{
		{Source: "People", Target: "People", Key: "boss", Array: "staff", Cascade: true, Limit: 10_000},
		{Source: "Pets", Target: "People", Key: "owner", Array: "pets", Cascade: true, Limit: 10_000},
		{Source: "Guests", Target: "People", Key: "host", Array: "guests", Limit: 10_000},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.set, h.worker = set, cascade.NewWorker(set, cascade.Options{})
	return h
}

func (h *house) put(_ context.Context, _ string, w driver.Write) error {
	if w.Body != nil {
		return nil
	}
	if h.patience.Load() == 0 {
		return errs.New(errs.Unavailable, "away")
	}
	h.patience.Add(-1)
	h.deletions.Add(1)
	return nil
}

func (h *house) save(name, uuid, key, target string) {
	h.Helper()
	if _, err := h.set.Store(name).Save(h.Context(), object.Object{key: object.AppendString(nil, target)}, uuid); err != nil {
		h.Fatal(err)
	}
}

// delete deletes an object and returns the event.
func (h *house) delete(name, uuid string) *event.Envelope {
	h.Helper()
	if err := h.set.Store(name).Delete(h.Context(), uuid, 0); err != nil {
		h.Fatal(err)
	}
	revision, _, err := h.set.Store(name).Deleted(h.Context(), uuid)
	if err != nil {
		h.Fatal(err)
	}
	return &event.Envelope{Event: event.StoreDeleted, Store: name, UUID: uuid, Revision: revision}
}

func (h *house) handle(e *event.Envelope) {
	h.Helper()
	if err := h.worker.Handle(h.Context(), e); err != nil {
		h.Fatal(err)
	}
}

// settle handles every deletion that waits in the stores, and those that these
// bring, until none is left, and reports how many those were.
func (h *house) settle() (handled int) {
	h.Helper()
	for progress := true; progress; {
		progress = false
		for _, name := range []string{"People", "Pets", "Guests"} {
			s := h.set.Store(name).Driver()
			waiting, _, err := s.Pending(h.Context(), nil, 100_000)
			if err != nil {
				h.Fatal(err)
			}
			for _, p := range waiting {
				var e event.Envelope
				if err := json.Unmarshal(p.Payload, &e); err != nil {
					h.Fatal(err)
				}
				if e.Event == event.StoreDeleted {
					progress = true
					handled++
					h.handle(&e)
				}
			}
			if err := s.Clear(h.Context(), waiting); err != nil {
				h.Fatal(err)
			}
		}
	}
	return handled
}

func (h *house) exists(name, uuid string) bool {
	h.Helper()
	found, err := h.set.Store(name).Exists(h.Context(), uuid)
	if err != nil {
		h.Fatal(err)
	}
	return found
}

func (h *house) count(name string) int64 {
	h.Helper()
	n, _, err := h.set.Store(name).Count(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	return n
}

func TestTenThousandChildrenGo(t *testing.T) {
	const n = 10_000
	h := newHouse(t)
	h.save("People", "p", "name", "p")
	h.save("People", "other", "name", "other")
	for i := range n {
		h.save("Pets", fmt.Sprint("pet", i), "owner", "p")
	}
	h.save("Pets", "stays", "owner", "other")
	h.handle(h.delete("People", "p"))
	if left := h.count("Pets"); left != 1 || !h.exists("Pets", "stays") {
		t.Errorf("%d pets are left, want the other's one", left)
	}
	if d := h.deletions.Load(); d != n+1 {
		t.Errorf("%d deletions, want each child's and its target's", d)
	}
}

func TestEachDeletionTellsTheNext(t *testing.T) {
	const depth = 100
	h := newHouse(t)
	h.save("People", "p0", "name", "first")
	for i := 1; i < depth; i++ {
		h.save("People", fmt.Sprint("p", i), "boss", fmt.Sprint("p", i-1))
	}
	h.save("Pets", "pet", "owner", fmt.Sprint("p", depth-1))
	h.delete("People", "p0")
	if n := h.settle(); n != depth+1 {
		t.Errorf("%d deletions were told, want %d", n, depth+1)
	}
	if h.count("People") != 0 || h.count("Pets") != 0 {
		t.Errorf("%d people and %d pets are left", h.count("People"), h.count("Pets"))
	}
}

func TestACascadeEndsInACircle(t *testing.T) {
	h := newHouse(t)
	h.save("People", "a", "boss", "c")
	h.save("People", "b", "boss", "a")
	h.save("People", "c", "boss", "b")
	h.save("People", "self", "boss", "self")
	h.delete("People", "a")
	h.delete("People", "self")
	h.settle()
	if n := h.count("People"); n != 0 {
		t.Errorf("%d people are left", n)
	}
}

func TestWithoutCascadeObjectsKeepTheirKey(t *testing.T) {
	h := newHouse(t)
	h.save("People", "p", "name", "p")
	h.save("Guests", "g", "host", "p")
	h.handle(h.delete("People", "p"))
	if !h.exists("Guests", "g") {
		t.Error("a guest went with the host")
	}
}

func TestACascadeThatBrokeOffGoesOn(t *testing.T) {
	h := newHouse(t)
	h.save("People", "p", "name", "p")
	for i := range 300 {
		h.save("Pets", fmt.Sprint("pet", i), "owner", "p")
	}
	e := h.delete("People", "p")
	h.patience.Store(100)
	if err := h.worker.Handle(t.Context(), e); !errors.Is(err, errs.Unavailable) {
		t.Fatalf("error %v, want that the store is away", err)
	}
	if n := h.count("Pets"); n == 0 || n == 300 {
		t.Fatalf("%d pets are left; the test wants to break off in between", n)
	}
	h.patience.Store(-1)
	h.handle(e)
	if n := h.count("Pets"); n != 0 {
		t.Errorf("%d pets are left", n)
	}
	h.handle(e)
	if d := h.deletions.Load(); d != 301 {
		t.Errorf("%d deletions, want 301: the event came again with nothing to do", d)
	}
}

func TestATargetThatIsBackKeepsWhatWasWrittenSince(t *testing.T) {
	h := newHouse(t)
	h.save("People", "p", "name", "p")
	h.save("Pets", "old", "owner", "p")
	h.save("Pets", "changed", "owner", "p")
	e := h.delete("People", "p")
	h.save("People", "p", "name", "again")
	h.save("Pets", "new", "owner", "p")
	if _, err := h.set.Store("Pets").Update(t.Context(), object.Object{"name": []byte(`"x"`)}, store.UpdateOptions{UUID: "changed"}); err != nil {
		t.Fatal(err)
	}
	h.handle(e)
	for uuid, stays := range map[string]bool{"old": false, "changed": true, "new": true} {
		if h.exists("Pets", uuid) != stays {
			t.Errorf("%s: exists %v, want %v", uuid, !stays, stays)
		}
	}
}

// A worker that keeps an array in a child moves its revision on, not its time.
func TestAChildWhoseArrayIsKeptGoes(t *testing.T) {
	h := newHouse(t)
	h.save("People", "boss", "name", "boss")
	h.save("People", "p", "boss", "boss")
	e := h.delete("People", "boss")
	h.save("People", "boss", "name", "again")
	h.save("Pets", "pet", "owner", "p")
	reconciler := mapping.NewReconciler(h.set, mapping.Options{})
	if err := reconciler.Reconcile(t.Context(), h.set.MappingsFrom("Pets")[0], "p", []string{"pet"}); err != nil {
		t.Fatal(err)
	}
	h.handle(e)
	if h.exists("People", "p") {
		t.Error("the child of the target's former life is left")
	}
}

func TestDeletionsSayThatACascadeMadeThem(t *testing.T) {
	h := newHouse(t)
	h.save("People", "p", "name", "p")
	h.save("Pets", "pet", "owner", "p")
	e := h.delete("People", "p")
	actor := "u"
	e.Actor = &actor
	h.handle(e)
	waiting, _, err := h.set.Store("Pets").Driver().Pending(t.Context(), nil, 10)
	if err != nil || len(waiting) != 2 {
		t.Fatalf("%d events wait, want two; error %v", len(waiting), err)
	}
	var told event.Envelope
	if err := json.Unmarshal(waiting[1].Payload, &told); err != nil {
		t.Fatal(err)
	}
	if told.Origin != event.OriginCascade || told.Actor == nil || *told.Actor != actor {
		t.Errorf("the event is %s", waiting[1].Payload)
	}
}
