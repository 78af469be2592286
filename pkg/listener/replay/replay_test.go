package replay_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/listener"
	"belfry/pkg/listener/replay"
	"belfry/test/kit"
)

func open(t *testing.T) *bus.Bus {
	t.Helper()
	b, err := bus.Open(t.Context(),
		bus.Options{Server: embedded.New(embedded.Options{Folder: t.TempDir()}), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	return b
}

// publish publishes one event of each of several objects.
func publish(t *testing.T, b *bus.Bus, from, to int) {
	t.Helper()
	var all []bus.Event
	for i := from; i < to; i++ {
		e := event.Envelope{ID: fmt.Sprint("e", i), Event: event.StoreSaved, Store: "Books", UUID: fmt.Sprint("b", i),
			Revision: 1}
		all = append(all, bus.Event{ID: e.ID, Subject: event.Subject(e.Event, e.Store, e.UUID), Payload: e.Append(nil)})
	}
	if err := b.Publish(t.Context(), all); err != nil {
		t.Fatal(err)
	}
}

// recorder counts the deliveries of a listener.
type recorder struct {
	mu       sync.Mutex
	received map[uint64]int // by sequence
}

func (e *recorder) handle(_ context.Context, ev *listener.Event) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.received == nil {
		e.received = map[uint64]int{}
	}
	e.received[ev.Sequence]++
	return nil
}

// least returns the lowest number of deliveries of an event of a range.
func (e *recorder) least(from, to uint64) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := e.received[from]
	for s := from; s <= to; s++ {
		n = min(n, e.received[s])
	}
	return n
}

func run(t *testing.T, b *bus.Bus, s listener.Spec) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- listener.Run(ctx, b, slog.New(slog.DiscardHandler), s) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// find returns a listener, or nil.
func find(t *testing.T, b *bus.Bus, name string) *replay.Listener {
	t.Helper()
	all, err := replay.List(t.Context(), b.JetStream())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		if l.Name == name {
			return l
		}
	}
	return nil
}

func idle(t *testing.T, b *bus.Bus, name string) {
	t.Helper()
	kit.WaitFor(t, name+" is idle",
		func() bool { l := find(t, b, name); return l != nil && l.Lag+uint64(l.Unacked) == 0 })
}

func reset(t *testing.T, b *bus.Bus, name, position string, want uint64) {
	t.Helper()
	from, err := eventlog.ParseFrom(position)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := replay.Reset(t.Context(), b.JetStream(), name, from); err != nil || got != want {
		t.Fatalf("reset to %s: sequence %d, %v; want %d", position, got, err, want)
	}
}

// TestResetReplays resets listeners of every kind, running and stopped, to
// positions before and after their start.
func TestResetReplays(t *testing.T) {
	for name, s := range map[string]listener.Spec{
		"new": {Start: listener.StartNew()}, "all": {Start: listener.StartAll()},
		"later":   {Start: listener.StartAtSequence(5)},
		"timed":   {Start: listener.StartAtTime(time.Now().Add(-time.Hour))},
		"ordered": {Start: listener.StartNew(), Ordered: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t)
			publish(t, b, 0, 10)
			var e recorder
			s.Name, s.Handler, s.Filters = name, e.handle, []string{event.Filter(event.StoreSaved, "Books")}
			stop := run(t, b, s)
			idle(t, b, name)
			before := config(t, b, name, s.Ordered)
			publish(t, b, 10, 20)
			kit.WaitFor(t, "new events are handled", func() bool { return e.least(11, 20) == 1 })
			idle(t, b, name)
			first, last := e.least(1, 4), e.least(11, 20)

			// A listener that is faster than the reset creates its consumer itself and
			// handles some events more than once.
			reset(t, b, name, "all", 1)
			kit.WaitFor(t, "all events are handled again",
				func() bool { return e.least(1, 4) > first && e.least(11, 20) > last })
			idle(t, b, name)
			fourteenth, last := e.least(14, 14), e.least(15, 20)
			reset(t, b, name, "15", 15) // by now the server can reset its consumer
			kit.WaitFor(t, "the last events are handled again", func() bool { return e.least(15, 20) > last })
			idle(t, b, name)
			if n := e.least(14, 14); n != fourteenth {
				t.Errorf("event 14 is handled %d times, want %d", n, fourteenth)
			}

			stop()
			publish(t, b, 20, 30)
			reset(t, b, name, "new", 31)
			publish(t, b, 30, 40)
			run(t, b, s)
			kit.WaitFor(t, "it continues at the new position", func() bool { return e.least(31, 40) == 1 })
			idle(t, b, name)
			if n := e.least(21, 30); n != 0 {
				t.Error("skipped events are handled")
			}
			after := config(t, b, name, s.Ordered)
			if after.AckWait != before.AckWait || after.MaxAckPending != before.MaxAckPending ||
				fmt.Sprint(after.FilterSubjects) != fmt.Sprint(before.FilterSubjects) {
				t.Errorf("the settings were %+v and are %+v", before, after)
			}
		})
	}
}

func config(t *testing.T, b *bus.Bus, name string, ordered bool) jetstream.ConsumerConfig {
	t.Helper()
	if ordered {
		name += "-7"
	}
	c, err := b.JetStream().Consumer(t.Context(), bus.StreamEvents, name)
	if err != nil {
		t.Fatal(err)
	}
	return c.CachedInfo().Config
}

// A running listener creates a missing consumer itself, before or after the
// reset does.
func TestResetOfARunningListenerLosesNoEvent(t *testing.T) {
	b := open(t)
	var e recorder
	publish(t, b, 0, 50)
	run(t, b, listener.Spec{Name: "busy", Start: listener.StartNew(), Handler: e.handle, Concurrency: 4})
	idle(t, b, "busy")
	for round := range 10 {
		from := uint64(40 - 4*round)
		reset(t, b, "busy", fmt.Sprint(from), from)
		publish(t, b, 50+round*10, 60+round*10)
	}
	kit.WaitFor(t, "all are handled", func() bool { return e.least(4, 150) >= 1 })
	idle(t, b, "busy")
}

// Listeners create a missing consumer at their own start: the reset must win even
// when that happens between its delete and its create.
func TestResetWinsOverConcurrentCreation(t *testing.T) {
	b := open(t)
	publish(t, b, 0, 10)
	fresh := jetstream.ConsumerConfig{Durable: "busy", FilterSubjects: []string{"events.>"},
		AckPolicy: jetstream.AckExplicitPolicy, DeliverPolicy: jetstream.DeliverNewPolicy}
	if _, err := b.JetStream().CreateConsumer(t.Context(), bus.StreamEvents, fresh); err != nil {
		t.Fatal(err)
	}
	// Two subscribers create it as soon as it is deleted, several times for each reset.
	var creations atomic.Int32
	for range 2 {
		if _, err := b.Conn().Subscribe("$JS.EVENT.ADVISORY.CONSUMER.DELETED.EVENTS.busy", func(*nats.Msg) {
			if creations.Add(-1) >= 0 {
				_, _ = b.JetStream().CreateConsumer(t.Context(), bus.StreamEvents, fresh)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	for place := uint64(10); place > 0; place-- {
		creations.Store(6)
		reset(t, b, "busy", fmt.Sprint(place), place)
		if c := config(t, b, "busy", false); c.OptStartSeq != place {
			t.Errorf("it starts at %d, want %d", c.OptStartSeq, place)
		}
	}
}

// failing fails to create consumers, as a server does that still removes the files of a
// deleted one.
type failing struct {
	jetstream.JetStream
	times int
}

func (f *failing) CreateConsumer(ctx context.Context, stream string,
	c jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	if f.times > 0 {
		f.times--
		return nil, &jetstream.APIError{Code: 500, ErrorCode: 10012,
			Description: "rename o.dat.tmp o.dat: no such file or directory"}
	}
	return f.JetStream.CreateConsumer(ctx, stream, c)
}

func TestResetCreatesTheConsumerThatTheServerFailedToCreate(t *testing.T) {
	b := open(t)
	publish(t, b, 0, 10)
	fresh := jetstream.ConsumerConfig{Durable: "busy", AckPolicy: jetstream.AckExplicitPolicy,
		DeliverPolicy: jetstream.DeliverNewPolicy}
	if _, err := b.JetStream().CreateConsumer(t.Context(), bus.StreamEvents, fresh); err != nil {
		t.Fatal(err)
	}
	from, err := eventlog.ParseFrom("5")
	if err != nil {
		t.Fatal(err)
	}
	if sequence, err := replay.Reset(t.Context(), &failing{b.JetStream(), 2}, "busy", from); err != nil ||
		sequence != 5 {
		t.Fatalf("sequence %d, %v", sequence, err)
	}
	if c := config(t, b, "busy", false); c.OptStartSeq != 5 {
		t.Errorf("it starts at %d, want 5", c.OptStartSeq)
	}
}

func TestListReportsLagAndUnacked(t *testing.T) {
	b := open(t)
	if all, err := replay.List(t.Context(), b.JetStream()); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	hold := make(chan struct{})
	run(t, b, listener.Spec{Name: "a-b", Start: listener.StartAll(), Prefetch: -1,
		Handler: func(context.Context, *listener.Event) error { <-hold; return nil }})
	run(t, b, listener.Spec{Name: "b", Start: listener.StartAll(), Ordered: true,
		Handler: func(context.Context, *listener.Event) error { <-hold; return nil }})
	t.Cleanup(sync.OnceFunc(func() { close(hold) }))
	publish(t, b, 0, 40)
	kit.WaitFor(t, "one has an event in flight, the other one for each partition", func() bool {
		a, o := find(t, b, "a-b"), find(t, b, "b")
		return a != nil && o != nil && a.Unacked == 1 && a.Lag == 39 && !a.Ordered && o.Ordered && o.Unacked > 1 &&
			o.Lag+uint64(o.Unacked) == 40 && !a.Last.IsZero()
	})
	if all, err := replay.List(t.Context(), b.JetStream()); err != nil || len(all) != 2 || all[0].Name != "a-b" {
		t.Errorf("%v, %v", all, err)
	}
	for _, name := range []string{"none", "b-1", ""} {
		if _, err := replay.Reset(t.Context(), b.JetStream(), name, eventlog.From{}); !errors.Is(err, errs.NotFound) {
			t.Errorf("reset of %q: %v", name, err)
		}
	}
}

// A server that starts again does not know when a consumer was last active: that is not never.
func TestAListenerWasUsedBeforeARestartOfTheBus(t *testing.T) {
	folder := t.TempDir()
	start := func() *bus.Bus {
		t.Helper()
		b, err := bus.Open(t.Context(),
			bus.Options{Server: embedded.New(embedded.Options{Folder: folder}), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close(context.Background()) })
		return b
	}
	b := start()
	received := func(context.Context, *listener.Event) error { return nil }
	stopUsed := run(t, b, listener.Spec{Name: "used", Start: listener.StartAll(), Handler: received})
	publish(t, b, 0, 3)
	idle(t, b, "used")
	stopUsed()
	stopNew := run(t, b, listener.Spec{Name: "unused", Start: listener.StartNew(), Handler: received})
	kit.WaitFor(t, "it has a consumer", func() bool { return find(t, b, "unused") != nil })
	stopNew()
	if l := find(t, b, "used"); l.Last.IsZero() || !l.Used {
		t.Errorf("%+v", l)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	b = start()
	if l := find(t, b, "used"); !l.Used {
		t.Errorf("after a restart: %+v", l)
	}
	if l := find(t, b, "unused"); l.Used || !l.Last.IsZero() {
		t.Errorf("one that received nothing: %+v", l)
	}
}
