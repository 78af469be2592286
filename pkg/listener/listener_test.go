package listener_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/listener"
	"belfry/test/kit"
)

func open(t testing.TB) *bus.Bus {
	t.Helper()
	return openWith(t, bus.Options{Server: embedded.New(embedded.Options{Folder: t.TempDir()})})
}

func openWith(t testing.TB, o bus.Options) *bus.Bus {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	b, err := bus.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	return b
}

// publish puts events e0, e1, ... of the store Books into the log.
func publish(t testing.TB, b *bus.Bus, from, to int) {
	t.Helper()
	var events []bus.Event
	for i := from; i < to; i++ {
		e := event.Envelope{ID: fmt.Sprintf("e%d", i), Event: event.StoreSaved, Store: "Books",
			UUID: fmt.Sprintf("b%d", i), Revision: uint64(i + 1)}
		events = append(events,
			bus.Event{ID: e.ID, Subject: event.Subject(e.Event, e.Store, e.UUID), Payload: e.Append(nil)})
	}
	if err := b.Publish(t.Context(), events); err != nil {
		t.Fatal(err)
	}
}

// run runs a listener in the background. stop ends it and returns its error.
func run(t testing.TB, b listener.Bus, spec listener.Spec) (stop func() error) {
	t.Helper()
	if spec.Name == "" {
		spec.Name = "test"
	}
	if spec.Filters == nil {
		spec.Filters = []string{event.Filter(event.StoreSaved, "Books")}
	}
	if spec.Backoff == nil {
		spec.Backoff = func(int) time.Duration { return 5 * time.Millisecond }
	}
	spec.Start = listener.StartAll()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- listener.Run(ctx, b, slog.New(slog.DiscardHandler), spec) }()
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = stop() })
	return stop
}

// seen notes what a handler was given.
type seen struct {
	mu  sync.Mutex
	ids []string
}

func (s *seen) note(e *listener.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids = append(s.ids, e.ID)
}

func (s *seen) distinct() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(slices.Compact(slices.Sorted(slices.Values(s.ids))))
}

func (s *seen) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ids)
}

func lag(t testing.TB, b *bus.Bus, name string) uint64 {
	t.Helper()
	pending, unacked, err := listener.Lag(t.Context(), b, name)
	if err != nil {
		return 1
	}
	return pending + unacked
}

func TestEventsAreHandledOnceAndAcknowledged(t *testing.T) {
	t.Parallel()
	b := open(t)
	publish(t, b, 0, 300)
	var s seen
	stop := run(t, b, listener.Spec{Concurrency: 16, Handler: func(_ context.Context, e *listener.Event) error {
		s.note(e)
		return nil
	}})
	publish(t, b, 300, 500)
	kit.WaitFor(t, "500 events are handled and acknowledged",
		func() bool { return s.distinct() == 500 && lag(t, b, "test") == 0 })
	if n := len(s.all()); n != 500 {
		t.Errorf("%d calls for 500 events", n)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestOneWorkerKeepsTheOrder(t *testing.T) {
	t.Parallel()
	b := open(t)
	publish(t, b, 0, 200)
	var s seen
	run(t, b, listener.Spec{Handler: func(_ context.Context, e *listener.Event) error { s.note(e); return nil }})
	kit.WaitFor(t, "all are handled", func() bool { return s.distinct() == 200 })
	for i, id := range s.all() {
		if want := fmt.Sprintf("e%d", i); id != want {
			t.Fatalf("event %d is %s", i, id)
		}
	}
}

func TestTransientErrorIsRetried(t *testing.T) {
	t.Parallel()
	b := open(t)
	publish(t, b, 0, 1)
	attempts := make(chan int, 10)
	run(t, b, listener.Spec{Handler: func(_ context.Context, e *listener.Event) error {
		attempts <- e.Attempt
		switch e.Attempt {
		case 1:
			return errors.New("not now")
		case 2:
			panic("nor now")
		}
		return nil
	}})
	for want := 1; want <= 3; want++ {
		if got := <-attempts; got != want {
			t.Errorf("attempt %d, want %d", got, want)
		}
	}
	kit.WaitFor(t, "it is acknowledged", func() bool { return lag(t, b, "test") == 0 })
}

// ackWait is longer than a busy machine stalls. Tests that wait for it to pass run
// in parallel with others.
const ackWait = 9 * time.Second

// letters returns the dead letters.
func letters(t *testing.T, b *bus.Bus) []*jetstream.RawStreamMsg {
	t.Helper()
	stream, err := b.JetStream().Stream(t.Context(), bus.StreamDead)
	if err != nil {
		t.Fatal(err)
	}
	var all []*jetstream.RawStreamMsg
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		m, err := stream.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

func TestPermanentErrorMakesADeadLetter(t *testing.T) {
	t.Parallel()
	b := open(t)
	publish(t, b, 0, 3)
	var s seen
	run(t, b, listener.Spec{MaxAttempts: 3, Handler: func(_ context.Context, e *listener.Event) error {
		s.note(e)
		switch e.ID {
		case "e0":
			return listener.Permanent(fmt.Errorf("wrong\nforever: %w", errs.New(errs.Invalid, "no title")))
		case "e1":
			return errors.New("again and again")
		}
		return nil
	}})
	kit.WaitFor(t, "all are acknowledged", func() bool { return s.distinct() == 3 && lag(t, b, "test") == 0 })
	all := letters(t, b)
	if len(all) != 2 {
		t.Fatalf("%d dead letters, want 2", len(all))
	}
	slices.SortFunc(all, func(x, y *jetstream.RawStreamMsg) int { return int(x.Data[7]) - int(y.Data[7]) })
	for i, want := range []map[string]string{
		{listener.HeaderReason: "wrong forever: no title", listener.HeaderAttempts: "1", listener.HeaderSequence: "1"},
		{listener.HeaderReason: "again and again", listener.HeaderAttempts: "3", listener.HeaderSequence: "2"},
	} {
		want[listener.HeaderListener] = "test"
		for name, value := range want {
			if got := all[i].Header.Get(name); got != value {
				t.Errorf("dead letter %d: %s is %q, want %q", i, name, got, value)
			}
		}
		if all[i].Subject != "dead.test" {
			t.Errorf("dead letter %d is on %s", i, all[i].Subject)
		}
	}
}

func TestUnreadableEventMakesADeadLetter(t *testing.T) {
	t.Parallel()
	b := open(t)
	if err := b.Publish(t.Context(),
		[]bus.Event{{ID: "x", Subject: event.Subject(event.StoreSaved, "Books", "x"),
			Payload: []byte("{")}}); err != nil {
		t.Fatal(err)
	}
	publish(t, b, 0, 1)
	var s seen
	run(t, b, listener.Spec{Handler: func(_ context.Context, e *listener.Event) error { s.note(e); return nil }})
	kit.WaitFor(t, "both are acknowledged", func() bool { return s.distinct() == 1 && lag(t, b, "test") == 0 })
	if n := len(letters(t, b)); n != 1 {
		t.Errorf("%d dead letters, want 1", n)
	}
}

func TestTimeoutCancelsAnAttempt(t *testing.T) {
	t.Parallel()
	b := open(t)
	publish(t, b, 0, 1)
	var s seen
	run(t, b, listener.Spec{Timeout: 20 * time.Millisecond,
		Handler: func(ctx context.Context, e *listener.Event) error {
			s.note(e)
			if e.Attempt == 1 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}})
	kit.WaitFor(t, "the second attempt succeeds", func() bool { return len(s.all()) == 2 && lag(t, b, "test") == 0 })
}

func TestStopFinishesEventsInFlight(t *testing.T) {
	t.Parallel()
	b := open(t)
	publish(t, b, 0, 20)
	var started, finished seen
	release := make(chan struct{})
	handler := func(ctx context.Context, e *listener.Event) error {
		started.note(e)
		<-release
		if ctx.Err() == nil {
			finished.note(e)
		}
		return ctx.Err()
	}
	stop := run(t, b, listener.Spec{Concurrency: 4, AckWait: kit.Limit, Handler: handler})
	kit.WaitFor(t, "four are in flight", func() bool { return len(started.all()) == 4 })
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	close(release)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	if len(finished.all()) != len(started.all()) {
		t.Errorf("%d of %d were finished", len(finished.all()), len(started.all()))
	}
	// Prefetched events are redelivered at once, not after AckWait, which is longer
	// than the limit of this wait.
	before := len(finished.all())
	run(t, b, listener.Spec{Concurrency: 4, AckWait: kit.Limit, Handler: handler})
	kit.WaitFor(t, "the others are handled", func() bool { return finished.distinct() == 20 && lag(t, b, "test") == 0 })
	if n := len(finished.all()); n != 20 {
		t.Errorf("%d calls for 20 events, %d before the stop", n, before)
	}
}

func TestNoEventIsLostWhenTheServerRestarts(t *testing.T) {
	t.Parallel()
	b := open(t)
	var s seen
	run(t, b, listener.Spec{Concurrency: 8, AckWait: time.Second,
		Handler: func(_ context.Context, e *listener.Event) error { s.note(e); return nil }})
	for round := range 3 {
		publish(t, b, 100*round, 100*round+100)
		if err := b.StopServer(); err != nil {
			t.Fatal(err)
		}
		if err := b.StartServer(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	kit.WaitFor(t, "300 events are handled", func() bool { return s.distinct() == 300 && lag(t, b, "test") == 0 })
}

func TestDeletedConsumerIsCreatedAgain(t *testing.T) {
	t.Parallel()
	b := open(t)
	var s seen
	run(t, b, listener.Spec{Handler: func(_ context.Context, e *listener.Event) error { s.note(e); return nil }})
	publish(t, b, 0, 10)
	kit.WaitFor(t, "ten are handled", func() bool { return s.distinct() == 10 })
	if err := b.JetStream().DeleteConsumer(t.Context(), bus.StreamEvents, "test"); err != nil {
		t.Fatal(err)
	}
	publish(t, b, 10, 20)
	kit.WaitFor(t, "the others too", func() bool { return s.distinct() == 20 })
}

func TestChangedFiltersAreApplied(t *testing.T) {
	t.Parallel()
	b := open(t)
	var s seen
	handler := func(_ context.Context, e *listener.Event) error { s.note(e); return nil }
	stop := run(t, b, listener.Spec{Filters: []string{event.Filter(event.StoreDeleted, "Books")}, Handler: handler})
	kit.WaitFor(t, "the consumer exists", func() bool { return lag(t, b, "test") == 0 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	// While a request for events is left, the server passes over those that the old filter does not select.
	kit.WaitFor(t, "no request is left", func() bool {
		c, err := b.JetStream().Consumer(t.Context(), bus.StreamEvents, "test")
		return err == nil && c.CachedInfo().NumWaiting == 0
	})
	publish(t, b, 0, 5)
	run(t, b, listener.Spec{Handler: handler})
	kit.WaitFor(t, "what the new filter selects is handled", func() bool { return s.distinct() == 5 })
}

func TestInvalidSpecsAreRejected(t *testing.T) {
	t.Parallel()
	b := open(t)
	handler := func(context.Context, *listener.Event) error { return nil }
	for name, spec := range map[string]listener.Spec{
		"no name":    {Filters: []string{"events.>"}, Handler: handler},
		"no events":  {Name: "x", Filters: []string{"Store.Saved"}, Handler: handler},
		"no filter":  {Name: "x", Filters: []string{}, Handler: handler},
		"both ways":  {Name: "x", Filters: []string{"events.>"}, Stores: []string{"Books"}, Handler: handler},
		"no handler": {Name: "x", Filters: []string{"events.>"}},
		"two handlers": {Name: "x", Handler: handler,
			Batch: func(context.Context, []*listener.Event) []error { return nil }},
		"ordered batches": {Name: "x", Ordered: true,
			Batch: func(context.Context, []*listener.Event) []error { return nil }},
		"a dot":         {Name: "x.y", Handler: handler},
		"no store":      {Name: "x", Stores: []string{"Books.*"}, Handler: handler},
		"every store":   {Name: "x", Stores: []string{"*"}, Handler: handler},
		"no event":      {Name: "x", Events: []event.Name{"Store..Saved"}, Handler: handler},
		"announcement":  {Name: "x", Events: []event.Name{event.StoreSave}, Handler: handler},
		"unknown event": {Name: "x", Events: []event.Name{"Store.Kept"}, Handler: handler},
		"overlap":       {Name: "x", Filters: []string{"events.>", "events.*.Store.Saved.A.*"}, Handler: handler},
	} {
		if err := listener.Run(t.Context(), b, slog.New(slog.DiscardHandler), spec); !errors.Is(err, errs.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFirstMiddlewareIsTheOutermost(t *testing.T) {
	t.Parallel()
	b := open(t)
	publish(t, b, 0, 1)
	var mu sync.Mutex
	var order []string
	say := func(what string) listener.Middleware {
		return func(next listener.Handler) listener.Handler {
			return func(ctx context.Context, e *listener.Event) error {
				mu.Lock()
				order = append(order, what)
				mu.Unlock()
				return next(ctx, e)
			}
		}
	}
	run(t, b, listener.Spec{
		Middleware: []listener.Middleware{say("outer"), say("inner")},
		Handler:    func(context.Context, *listener.Event) error { return nil },
	})
	calls := func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(order)
	}
	kit.WaitFor(t, "it is handled", func() bool { return len(calls()) == 2 })
	if order := calls(); !slices.Equal(order, []string{"outer", "inner"}) {
		t.Errorf("called %v", order)
	}
}

func BenchmarkListener(b *testing.B) {
	bus := open(b)
	for i := 0; i < b.N; i += 1000 {
		publish(b, bus, i, min(i+1000, b.N))
	}
	handled := make(chan struct{}, 1024)
	b.ResetTimer()
	run(b, bus, listener.Spec{Concurrency: 256, Handler: func(context.Context, *listener.Event) error {
		handled <- struct{}{}
		return nil
	}})
	for range b.N {
		<-handled
	}
}

func TestAnEventThatKeepsFailingIsAWarning(t *testing.T) {
	t.Parallel()
	for _, ordered := range []bool{false, true} {
		b := open(t)
		publish(t, b, 0, 1)
		var text lines
		attempts := 0
		ctx, cancel := context.WithCancel(t.Context())
		if err := listener.Run(ctx, b, slog.New(slog.NewTextHandler(&text, nil)), listener.Spec{
			Name: "test", Filters: []string{event.Filter(event.StoreSaved, "Books")}, Start: listener.StartAll(),
			Ordered: ordered, Drain: time.Minute, Backoff: func(int) time.Duration { return time.Millisecond },
			Handler: func(context.Context, *listener.Event) error {
				if attempts++; attempts <= 20 {
					return errors.New("the stock is unavailable")
				}
				cancel()
				return nil
			},
		}); err != nil {
			t.Fatal(err)
		}
		if text.count("an event is retried") != 1 || text.count("attempt=8 ") != 1 {
			t.Errorf("ordered %t: after 20 failures the log is:\n%s", ordered, text.String())
		}
	}
}
