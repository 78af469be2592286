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
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	encoded "belfry/pkg/store/object"
	"belfry/test/model"
)

// desk is a worker on a backend that counts the writes of arrays and can hold
// them up or fail them.
type desk struct {
	*testing.T
	set    *store.Set
	worker *mapping.Worker
	writes atomic.Int64
	away   atomic.Bool
	hold   chan struct{} // a write of an array takes one token; nil for no hold
}

func newDesk(t *testing.T, held bool) *desk {
	d := &desk{T: t}
	if held {
		d.hold = make(chan struct{})
	}
	backend := &model.Hooked{Backend: model.NewMemory()}
	set, err := model.OpenSet(t.Context(), backend, books(10_000), nil)
	if err != nil {
		t.Fatal(err)
	}
	d.set = set
	if _, err := set.Store("Authors").Save(t.Context(), encoded.Object{}, "a"); err != nil {
		t.Fatal(err)
	}
	backend.BeforePut = d.put
	d.worker = mapping.NewWorker(set, mapping.Options{})
	t.Cleanup(d.worker.Close)
	return d
}

func (d *desk) put(ctx context.Context, name string, _ driver.Write) error {
	if name != "Authors" {
		return nil
	}
	if d.away.Load() {
		return errs.New(errs.Unavailable, "away")
	}
	d.writes.Add(1)
	if d.hold == nil {
		return nil
	}
	select {
	case <-d.hold:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// save saves a book and returns its event.
func (d *desk) save(uuid string) *event.Envelope {
	d.Helper()
	x, err := d.set.Store("Books").Save(d.Context(), encoded.Object{"author": []byte(`"a"`)}, uuid)
	if err != nil {
		d.Fatal(err)
	}
	return &event.Envelope{Event: event.StoreSaved, Store: "Books", UUID: uuid, Revision: x.Revision, Object: x.Body, Origin: event.OriginGo}
}

func (d *desk) entries() int {
	d.Helper()
	a, err := d.set.Store("Authors").Get(d.Context(), "a")
	if err != nil {
		d.Fatal(err)
	}
	return bytes.Count(encoded.Field(a.Body, "books"), []byte(`{"uuid":`))
}

// until waits for a condition.
func (d *desk) until(what string, holds func() bool) {
	d.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-d.Context().Done():
			d.Fatalf("not reached: %s", what)
		}
	}
}

// handleAll handles events at once; the result waits for their ends.
func (d *desk) handleAll(ctx context.Context, events []*event.Envelope) func() []error {
	all := make([]error, len(events))
	var running sync.WaitGroup
	for i, e := range events {
		running.Go(func() { all[i] = d.worker.Handle(ctx, e) })
	}
	return func() []error { running.Wait(); return all }
}

func (d *desk) saves(n int) []*event.Envelope {
	events := make([]*event.Envelope, n)
	for i := range events {
		events[i] = d.save(fmt.Sprintf("x%03d", i))
	}
	return events
}

func TestEventsInHandTogetherCostOneWrite(t *testing.T) {
	d := newDesk(t, true)
	events := d.saves(200)
	first := d.handleAll(t.Context(), events[:1])
	d.until("the first write", func() bool { return d.writes.Load() == 1 })
	rest := d.handleAll(t.Context(), events[1:])
	m := &d.set.Mappings()[0]
	d.until("all others wait", func() bool { return d.worker.Waiting(m, "a") == len(events)-1 })
	close(d.hold)
	for _, err := range append(first(), rest()...) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := d.writes.Load(); n != 2 {
		t.Errorf("%d writes, want one for the first event and one for all others", n)
	}
	if n := d.entries(); n != len(events) {
		t.Errorf("%d entries, want %d", n, len(events))
	}
}

func TestAFailedWriteFailsEveryEventOfIt(t *testing.T) {
	d := newDesk(t, false)
	events := d.saves(20)
	d.away.Store(true)
	for _, err := range d.handleAll(t.Context(), events)() {
		if !errors.Is(err, errs.Unavailable) {
			t.Fatalf("error %v, want that the store is away", err)
		}
	}
	d.away.Store(false)
	for _, err := range d.handleAll(t.Context(), events)() {
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := d.entries(); n != len(events) {
		t.Errorf("%d entries, want %d", n, len(events))
	}
}

func TestAHandlerThatGivesUpLeavesTheWriteToOthers(t *testing.T) {
	d := newDesk(t, true)
	events := d.saves(2)
	ctx, cancel := context.WithCancel(t.Context())
	impatient := d.handleAll(ctx, events[:1])
	d.until("the write", func() bool { return d.writes.Load() == 1 })
	cancel()
	if err := impatient()[0]; errs.KindOf(err) != errs.Canceled {
		t.Errorf("error %v, want %q", err, errs.Canceled)
	}
	patient := d.handleAll(t.Context(), events[1:])
	close(d.hold)
	if err := patient()[0]; err != nil {
		t.Fatal(err)
	}
	if n := d.entries(); n != 2 {
		t.Errorf("%d entries, want 2", n)
	}
}

func TestCloseEndsWhatIsInHand(t *testing.T) {
	d := newDesk(t, true)
	handled := d.handleAll(t.Context(), d.saves(1))
	d.until("the write", func() bool { return d.writes.Load() == 1 })
	d.worker.Close()
	if err := handled()[0]; err == nil {
		t.Error("the event counts as applied, though its write was given up")
	}
}

// A worker's own writes are no reason to map.
func TestAWorkersWritesAreLeftAlone(t *testing.T) {
	d := newDesk(t, false)
	e := d.save("x")
	e.Origin = mapping.Name
	if err := d.worker.Handle(t.Context(), e); err != nil || d.writes.Load() != 0 {
		t.Errorf("error %v, %d writes; want none", err, d.writes.Load())
	}
}
