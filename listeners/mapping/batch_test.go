package mapping_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"belfry/listeners/mapping"
	"belfry/listeners/rounds"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	encoded "belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/test/model"
)

// harness is a worker on a backend that counts the writes of arrays, and can
// block them or make them fail.
type harness struct {
	*testing.T
	set    *store.Set
	worker *mapping.Worker
	writes atomic.Int64
	fail   atomic.Bool
	gate   chan struct{} // a write of an array blocks until it is closed; nil for no blocking
}

func newHarness(t *testing.T, blocked bool) *harness {
	h := &harness{T: t}
	if blocked {
		h.gate = make(chan struct{})
	}
	backend := &model.Hooked{Backend: model.NewMemory()}
	set, err := model.OpenSet(t.Context(), backend, books(10_000), nil)
	if err != nil {
		t.Fatal(err)
	}
	h.set = set
	if _, err := set.Store("Authors").Save(t.Context(), encoded.Object{}, "a"); err != nil {
		t.Fatal(err)
	}
	backend.BeforePut = h.put
	h.worker = mapping.NewWorker(set, mapping.Options{})
	t.Cleanup(h.worker.Close)
	return h
}

func (h *harness) put(ctx context.Context, name string, _ driver.Write) error {
	if name != "Authors" {
		return nil
	}
	if h.fail.Load() {
		return errs.New(errs.Unavailable, "down")
	}
	h.writes.Add(1)
	if h.gate == nil {
		return nil
	}
	select {
	case <-h.gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// save creates a book and returns its event.
func (h *harness) save(uuid string) *event.Envelope {
	h.Helper()
	x, err := h.set.Store("Books").Save(h.Context(), encoded.Object{"author": []byte(`"a"`)}, uuid)
	if err != nil {
		h.Fatal(err)
	}
	return &event.Envelope{Event: event.StoreSaved, Store: "Books", UUID: uuid, Revision: x.Revision, Object: x.Body,
		Origin: event.OriginGo}
}

func (h *harness) entries() int {
	h.Helper()
	a, err := h.set.Store("Authors").Get(h.Context(), "a")
	if err != nil {
		h.Fatal(err)
	}
	return bytes.Count(encoded.Field(a.Body, "books"), []byte(`{"uuid":`))
}

// until waits for a condition.
func (h *harness) until(what string, holds func() bool) {
	h.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-h.Context().Done():
			h.Fatalf("condition not reached: %s", what)
		}
	}
}

// handleAll handles events concurrently; the result waits for all and returns
// their errors.
func (h *harness) handleAll(ctx context.Context, events []*event.Envelope) func() []error {
	all := make([]error, len(events))
	var running sync.WaitGroup
	for i, e := range events {
		running.Go(func() { all[i] = h.worker.Handle(ctx, e) })
	}
	return func() []error { running.Wait(); return all }
}

func (h *harness) saves(n int) []*event.Envelope {
	events := make([]*event.Envelope, n)
	for i := range events {
		events[i] = h.save(fmt.Sprintf("x%03d", i))
	}
	return events
}

func TestEventsInFlightTogetherShareOneWrite(t *testing.T) {
	h := newHarness(t, true)
	events := h.saves(200)
	first := h.handleAll(t.Context(), events[:1])
	h.until("the first write", func() bool { return h.writes.Load() == 1 })
	rest := h.handleAll(t.Context(), events[1:])
	m := &h.set.Mappings()[0]
	h.until("all others wait", func() bool { return h.worker.Waiting(rounds.Key{Mapping: m, Target: "a"}) == len(events)-1 })
	close(h.gate)
	for _, err := range append(first(), rest()...) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := h.writes.Load(); n != 2 {
		t.Errorf("%d writes, want one for the first event and one for all others", n)
	}
	if n := h.entries(); n != len(events) {
		t.Errorf("%d entries, want %d", n, len(events))
	}
}

func TestFailedWriteFailsEveryEventOfItsBatch(t *testing.T) {
	h := newHarness(t, false)
	events := h.saves(20)
	h.fail.Store(true)
	for _, err := range h.handleAll(t.Context(), events)() {
		if !errors.Is(err, errs.Unavailable) {
			t.Fatalf("error %v, want that the store is unavailable", err)
		}
	}
	h.fail.Store(false)
	for _, err := range h.handleAll(t.Context(), events)() {
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := h.entries(); n != len(events) {
		t.Errorf("%d entries, want %d", n, len(events))
	}
}

func TestCanceledHandlerDoesNotCancelTheBatch(t *testing.T) {
	h := newHarness(t, true)
	events := h.saves(2)
	ctx, cancel := context.WithCancel(t.Context())
	canceled := h.handleAll(ctx, events[:1])
	h.until("the write", func() bool { return h.writes.Load() == 1 })
	cancel()
	if err := canceled()[0]; errs.KindOf(err) != errs.Canceled {
		t.Errorf("error %v, want %q", err, errs.Canceled)
	}
	other := h.handleAll(t.Context(), events[1:])
	close(h.gate)
	if err := other()[0]; err != nil {
		t.Fatal(err)
	}
	if n := h.entries(); n != 2 {
		t.Errorf("%d entries, want 2", n)
	}
}

func TestCloseCancelsWritesInFlight(t *testing.T) {
	h := newHarness(t, true)
	handled := h.handleAll(t.Context(), h.saves(1))
	h.until("the write", func() bool { return h.writes.Load() == 1 })
	h.worker.Close()
	if err := handled()[0]; err == nil {
		t.Error("the event was handled successfully although its write was canceled")
	}
}

func TestWorkerIgnoresEventsOfItsOwnWrites(t *testing.T) {
	h := newHarness(t, false)
	e := h.save("x")
	e.Origin = mapping.Name
	if err := h.worker.Handle(t.Context(), e); err != nil || h.writes.Load() != 0 {
		t.Errorf("error %v, %d writes; want none", err, h.writes.Load())
	}
}

func (h *harness) handle(e *event.Envelope) {
	h.Helper()
	if err := h.worker.Handle(h.Context(), e); err != nil {
		h.Fatal(err)
	}
}

func TestCreatedTargetIsBackfilled(t *testing.T) {
	h := newHarness(t, false)
	h.save("x")
	h.handle(&event.Envelope{Event: event.StoreSaved, Store: "Authors", UUID: "a", Object: []byte(`{}`),
		Origin: event.OriginGo})
	if n := h.entries(); n != 1 {
		t.Errorf("%d entries, want 1", n)
	}
}

// An event whose object was too large names its targets by the object as it is.
func TestObjectOmittedFromItsEventIsRead(t *testing.T) {
	h := newHarness(t, false)
	e := h.save("x")
	e.Object, e.ObjectOmitted = nil, true
	h.handle(e)
	if n := h.entries(); n != 1 {
		t.Errorf("%d entries, want 1", n)
	}
}
