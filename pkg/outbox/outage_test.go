package outbox_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/outbox"
	"belfry/pkg/store/driver"
)

func TestFlushAndCloseDoNotWaitForAnUnavailableBus(t *testing.T) {
	b := open(t)
	r := start(t, outbox.Options{Publisher: b})
	s := newRecords("Users")
	r.Add("Users", s)
	flush(t, r)
	if err := b.StopServer(); err != nil {
		t.Fatal(err)
	}
	w := &writer{t: t, relay: r, store: s}
	w.commit(1, 10)
	for name, end := range map[string]func(context.Context) error{"flush": r.Flush, "close": r.Close} {
		if err := end(t.Context()); !errors.Is(err, errs.Unavailable) && errs.KindOf(err) != errs.Canceled {
			t.Errorf("%s reports %v, want Unavailable", name, err)
		}
	}
	if s.count() != 1 {
		t.Error("the event was cleared")
	}
}

func TestFlushSucceedsAfterAnOutage(t *testing.T) {
	b := open(t)
	r := start(t, outbox.Options{Publisher: b})
	s := newRecords("Users")
	r.Add("Users", s)
	w := &writer{t: t, relay: r, store: s}
	for round := range 3 {
		if err := b.StopServer(); err != nil {
			t.Fatal(err)
		}
		w.commit(round, 10)
		eventually(t, func() bool { return r.Stats().Unavailable })
		if err := b.StartServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		flush(t, r)
	}
	verify(t, log(t, b), 3)
}

// syncRecorder records which events were published before a sync started.
type syncRecorder struct {
	*bus.Bus
	mu        sync.Mutex
	published []string
	synced    int // of published, those that a sync covers
}

func (o *syncRecorder) Publish(ctx context.Context, events []bus.Event) error {
	err := o.Bus.Publish(ctx, events)
	if err == nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		for i := range events {
			o.published = append(o.published, events[i].ID)
		}
	}
	return err
}

func (o *syncRecorder) Sync(ctx context.Context) error {
	o.mu.Lock()
	covered := len(o.published)
	o.mu.Unlock()
	err := o.Bus.Sync(ctx)
	if err == nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.synced = max(o.synced, covered)
	}
	return err
}

// survive reports whether all of these events would survive a power failure now.
func (o *syncRecorder) survive(events []driver.Pending) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	safe := make(map[string]bool, o.synced)
	for _, id := range o.published[:o.synced] {
		safe[id] = true
	}
	for i := range events {
		if !safe[events[i].ID] {
			return false
		}
	}
	return true
}

// guardedRecords checks that events are synced before they are cleared.
type guardedRecords struct {
	*records
	bus *syncRecorder
	t   *testing.T
}

func (g *guardedRecords) Clear(ctx context.Context, events []driver.Pending) error {
	if !g.bus.survive(events) {
		g.t.Error("an event was cleared before a sync that started after it was published")
	}
	return g.records.Clear(ctx, events)
}

func TestEventsAreClearedAfterASyncThatCoversThem(t *testing.T) {
	o := &syncRecorder{Bus: open(t)}
	r := start(t,
		outbox.Options{Publisher: o, MaxEvents: 100, SweepEvery: 5 * time.Millisecond, SweepAge: time.Nanosecond})
	s := newRecords("Users")
	r.Add("Users", &guardedRecords{records: s, bus: o, t: t})
	w := &writer{t: t, relay: r, store: s}
	var writers sync.WaitGroup
	for n := range 4 {
		writers.Go(func() {
			for i := range 1_000 {
				w.commit(4*i%100+n, 20)
			}
		})
	}
	writers.Wait()
	flush(t, r)
	eventually(t, func() bool { return s.count() == 0 })
}
