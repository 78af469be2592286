package listener_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"belfry/pkg/bus"
	"belfry/pkg/event"
	"belfry/pkg/listener"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

// happen publishes events to the log.
func happen(t testing.TB, b *bus.Bus, all ...event.Envelope) {
	t.Helper()
	var list []bus.Event
	for _, e := range all {
		list = append(list,
			bus.Event{ID: e.ID, Subject: event.Subject(e.Event, e.Store, e.UUID), Payload: e.Append(nil)})
	}
	natsserver.Publish(t, b, list...)
}

// start runs a listener, as run does, with defaults for its name and a short backoff only.
func start(t testing.TB, b *bus.Bus, spec listener.Spec) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	if spec.Name == "" {
		spec.Name = "test"
	}
	if spec.Backoff == nil {
		spec.Backoff = func(int) time.Duration { return 5 * time.Millisecond }
	}
	go func() { done <- listener.Run(ctx, b, slog.New(slog.DiscardHandler), spec) }()
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = stop() })
	return stop
}

func TestEventsAndStoresSelectEvents(t *testing.T) {
	t.Parallel()
	b := open(t)
	happen(t, b,
		event.Envelope{ID: "saved", Event: event.StoreSaved, Store: "Books", UUID: "b.1.x"},
		event.Envelope{ID: "deleted", Event: event.StoreDeleted, Store: "Books", UUID: "b.1.x"},
		event.Envelope{ID: "uploaded", Event: event.BinaryUploaded, Store: "Books", UUID: "b2"},
		event.Envelope{ID: "user", Event: event.StoreSaved, Store: "Users", UUID: "ada@example.com"},
		event.Envelope{ID: "registered", Event: event.Register, Store: "Users", UUID: "ada@example.com"},
		event.Envelope{ID: "author", Event: event.StoreUpdated, Store: "Authors", UUID: "..a."},
		event.Envelope{ID: "in", Event: event.AuthLoggedIn, Store: "Users", UUID: "ada@example.com"},
		event.Envelope{ID: "out", Event: event.AuthLoggedOut, Store: "Users", UUID: "ada@example.com"},
	)
	number := 0
	all := []string{"saved", "deleted", "uploaded", "user", "registered", "author"}
	for name, c := range map[string]struct {
		spec listener.Spec
		want []string
	}{
		"all": {listener.Spec{}, all},
		"one store": {listener.Spec{Stores: []string{"Books"}},
			[]string{"saved", "deleted", "uploaded"}},
		"two stores": {listener.Spec{Stores: []string{"Users", "Authors"}},
			[]string{"user", "registered", "author"}},
		"one event": {listener.Spec{Events: []event.Name{event.StoreSaved}},
			[]string{"saved", "user"}},
		"an event of one token": {listener.Spec{Events: []event.Name{event.Register}}, []string{"registered"}},
		"events of a store": {listener.Spec{Events: []event.Name{event.StoreDeleted, event.Register},
			Stores: []string{"Books"}}, []string{"deleted"}},
		"events of any store by '*'": {listener.Spec{Events: []event.Name{"Store.*"}},
			[]string{"saved", "deleted", "user", "author"}},
		"patterns of names": {listener.Spec{Events: []event.Name{"*.*"}},
			[]string{"saved", "deleted", "uploaded", "user", "author"}},
		"a log-in":               {listener.Spec{Events: []event.Name{event.AuthLoggedIn}}, []string{"in"}},
		"all of accounts":        {listener.Spec{Events: event.Auth()}, []string{"in", "out"}},
		"all of accounts by '*'": {listener.Spec{Events: []event.Name{event.AuthPattern}}, []string{"in", "out"}},
		"everything": {listener.Spec{Filters: []string{"events.>", "events.*.Auth.>"}},
			append(slices.Clone(all), "in", "out")},
		"a wide filter":            {listener.Spec{Filters: []string{"events.>"}}, all},
		"a wide filter of a store": {listener.Spec{Filters: []string{"events.*.*.*.Users.*"}}, []string{"user"}},
		"filters": {listener.Spec{Filters: []string{"events.*.Store.*.Books.b%2E1%2Ex"}},
			[]string{"saved", "deleted"}},
	} {
		for _, ordered := range []bool{false, true} {
			if ordered && name != "all" && name != "a log-in" && name != "events of a store" && name != "filters" {
				continue // an ordered listener has many consumers, all with the same selection
			}
			t.Run(name+map[bool]string{true: ", in order"}[ordered], func(t *testing.T) {
				var s seen
				consumer := fmt.Sprintf("listener%d", number)
				number++
				spec := c.spec
				spec.Name, spec.Start, spec.Ordered = consumer, listener.StartAll(), ordered
				spec.Handler = func(_ context.Context, e *listener.Event) error { s.note(e); return nil }
				stop := start(t, b, spec)
				kit.WaitFor(t, "all is handled",
					func() bool { return s.distinct() >= len(c.want) && lag(t, b, consumer) == 0 })
				if err := stop(); err != nil {
					t.Fatal(err)
				}
				got := s.all()
				if !ordered && !slices.Equal(got, c.want) ||
					!slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(c.want))) {
					t.Errorf("handled %v, want %v", got, c.want)
				}
			})
		}
	}
}

func TestStartAppliesToANewConsumerOnly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		start func(third time.Time) listener.Start
		want  []string // of those that were there before
	}{
		"new": {func(time.Time) listener.Start { return listener.StartNew() }, nil},
		"all": {func(time.Time) listener.Start { return listener.StartAll() },
			[]string{"e0", "e1", "e2", "e3", "e4"}},
		"time":     {listener.StartAtTime, []string{"e2", "e3", "e4"}},
		"later":    {func(time.Time) listener.Start { now := time.Now(); return listener.StartAtTime(now) }, nil},
		"sequence": {func(time.Time) listener.Start { return listener.StartAtSequence(4) }, []string{"e3", "e4"}},
	} {
		for _, ordered := range []bool{false, true} {
			if ordered && name != "new" && name != "time" {
				continue // an ordered listener has many consumers, which start like one
			}
			t.Run(name+map[bool]string{true: ", in order"}[ordered], func(t *testing.T) {
				t.Parallel()
				b := open(t)
				publish(t, b, 0, 2)
				publish(t, b, 2, 5)
				var s seen
				spec := listener.Spec{
					Start: c.start(loggedAt(t, b, 3)), Ordered: ordered,
					Handler: func(_ context.Context, e *listener.Event) error { s.note(e); return nil },
				}
				stop := start(t, b, spec)
				kit.WaitFor(t, "it has handled all",
					func() bool { return len(s.all()) >= len(c.want) && lag(t, b, "test") == 0 })
				if err := stop(); err != nil {
					t.Fatal(err)
				}
				if got := slices.Sorted(slices.Values(s.all())); !slices.Equal(got, c.want) {
					t.Errorf("of the existing events it handles %v, want %v", got, c.want)
				}
				// It continues at its position, whatever the spec says.
				publish(t, b, 5, 6)
				spec.Start = listener.StartAll()
				start(t, b, spec)
				kit.WaitFor(t, "it handles the new event",
					func() bool { return s.distinct() == len(c.want)+1 && lag(t, b, "test") == 0 })
				if n := len(s.all()); n != len(c.want)+1 {
					t.Errorf("it has handled %d events, want %d", n, len(c.want)+1)
				}
			})
		}
	}
}

// loggedAt returns the time at which an event was stored.
func loggedAt(t testing.TB, b *bus.Bus, sequence uint64) time.Time {
	t.Helper()
	stream, err := b.JetStream().Stream(t.Context(), bus.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetMsg(t.Context(), sequence)
	if err != nil {
		t.Fatal(err)
	}
	return m.Time
}
