package listener_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/pkg/bus"
	"belfry/pkg/event"
	"belfry/pkg/listener"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

// TestEventsInBackoffDoNotBlockOthers has more events in a backoff of an hour than
// a listener can have in flight.
func TestEventsInBackoffDoNotBlockOthers(t *testing.T) {
	t.Parallel()
	b := open(t)
	const poison = 3000
	publish(t, b, 0, poison)
	publish(t, b, poison, poison+50)
	var healthy seen
	run(t, b, listener.Spec{
		Concurrency: 16, Backoff: func(int) time.Duration { return time.Hour },
		Handler: func(_ context.Context, e *listener.Event) error {
			if e.Sequence <= poison {
				return errors.New("not now")
			}
			healthy.note(e)
			return nil
		},
	})
	kit.WaitFor(t, "the events after the failing ones are handled", func() bool { return healthy.distinct() == 50 })
}

// Neither an event whose handler takes longer than AckWait is redelivered, though other
// workers are free, nor are those that wait for the only worker.
func TestEventsOfASlowHandlerAreNotRedelivered(t *testing.T) {
	t.Parallel()
	const events = 3
	b := open(t)
	publish(t, b, 0, events)
	handled := map[string]*seen{"one": {}, "four": {}}
	for name, concurrency := range map[string]int{"one": 1, "four": 4} {
		start(t, b, listener.Spec{Name: name, Start: listener.StartAll(), AckWait: ackWait, Concurrency: concurrency,
			Handler: func(_ context.Context, e *listener.Event) error {
				handled[name].note(e)
				if e.ID == "e0" {
					<-time.After(ackWait * 4 / 3)
				}
				if e.Attempt != 1 {
					t.Errorf("event %s is delivered to %s with attempt %d", e.ID, name, e.Attempt)
				}
				return nil
			}})
	}
	for name, s := range handled {
		kit.WaitFor(t, "all are handled", func() bool { return s.distinct() == events && lag(t, b, name) == 0 })
		if n := len(s.all()); n != events {
			t.Errorf("%d calls of %s for %d events", n, name, events)
		}
	}
}

func TestTooLargeDeadLetterOmitsItsData(t *testing.T) {
	t.Parallel()
	b := open(t)
	payload := make([]byte, int(b.Conn().MaxPayload())-262) // unreadable
	e := bus.Event{ID: "large", Subject: event.Subject(event.StoreSaved, "Books", strings.Repeat("x", 200)),
		Payload: payload}
	if err := b.Publish(t.Context(), []bus.Event{e}); err != nil {
		t.Fatal(err)
	}
	run(t, b, listener.Spec{Handler: func(context.Context, *listener.Event) error { return nil }})
	kit.WaitFor(t, "the event is a dead letter",
		func() bool { return len(letters(t, b)) == 1 && lag(t, b, "test") == 0 })
	letter := letters(t, b)[0]
	if len(letter.Data) != 0 || letter.Header.Get(listener.HeaderOmitted) != "true" ||
		letter.Header.Get(listener.HeaderSequence) != "1" {
		t.Errorf("the dead letter has %d bytes and headers %v", len(letter.Data), letter.Header)
	}
}

func TestDeadLettersOfARecreatedLogAreNotDuplicates(t *testing.T) {
	t.Parallel()
	b := open(t)
	run(t, b, listener.Spec{Handler: func(context.Context, *listener.Event) error {
		return listener.Permanent(errors.New("never"))
	}})
	for round := 1; round <= 2; round++ {
		kit.WaitFor(t, "the log accepts an event", func() bool {
			e := event.Envelope{ID: fmt.Sprintf("e%d", round), Event: event.StoreSaved, Store: "Books", UUID: "b",
				Revision: 1}
			return b.Publish(t.Context(),
				[]bus.Event{{ID: e.ID, Subject: event.Subject(e.Event, e.Store, e.UUID),
					Payload: e.Append(nil)}}) == nil
		})
		kit.WaitFor(t, "it is a dead letter", func() bool { return len(letters(t, b)) == round })
		if err := b.JetStream().DeleteStream(t.Context(), bus.StreamEvents); err != nil {
			t.Fatal(err)
		}
	}
}

func TestListenerToNewEventsMissesNoneWhenItsConsumerIsDeleted(t *testing.T) {
	t.Parallel()
	b := open(t)
	var s seen
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- listener.Run(ctx, b, slog.New(slog.DiscardHandler), listener.Spec{
			Name: "test", Filters: []string{event.Filter(event.StoreSaved, "Books")}, Start: listener.StartNew(),
			Handler: func(_ context.Context, e *listener.Event) error { s.note(e); return nil },
		})
	}()
	kit.WaitFor(t, "the consumer exists", func() bool { return lag(t, b, "test") == 0 })
	if err := b.JetStream().DeleteConsumer(t.Context(), bus.StreamEvents, "test"); err != nil {
		t.Fatal(err)
	}
	publish(t, b, 0, 20)
	kit.WaitFor(t, "events published without a consumer are handled", func() bool { return s.distinct() == 20 })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestConsumerInSyncIsNotUpdated(t *testing.T) {
	t.Parallel()
	b := open(t)
	var s seen
	handler := func(_ context.Context, e *listener.Event) error { s.note(e); return nil }
	changed, err := b.Conn().SubscribeSync("$JS.EVENT.ADVISORY.CONSUMER.*.EVENTS.test")
	if err != nil {
		t.Fatal(err)
	}
	stop := run(t, b, listener.Spec{Handler: handler})
	if _, err := natsserver.Next(changed); err != nil { // the server reports the creation when it gets to it
		t.Fatalf("the consumer is not created: %v", err)
	}
	kit.WaitFor(t, "the consumers exist", func() bool {
		_, err := b.JetStream().Consumer(t.Context(), bus.StreamRetry, "test")
		return err == nil && lag(t, b, "test") == 0
	})
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	created, err := b.Conn().SubscribeSync("$JS.API.CONSUMER.CREATE.>")
	if err != nil {
		t.Fatal(err)
	}
	publish(t, b, 0, 1)
	run(t, b, listener.Spec{Handler: handler})
	kit.WaitFor(t, "the event is handled", func() bool { return s.distinct() == 1 && lag(t, b, "test") == 0 })
	for _, sub := range []*nats.Subscription{changed, created} {
		n, _, err := sub.Pending()
		if err != nil {
			t.Error(err)
		}
		for range n {
			if m, err := natsserver.Next(sub); err != nil {
				t.Error(err)
			} else {
				t.Errorf("the consumer was created or updated: %s %s", m.Subject, m.Data)
			}
		}
	}
}

func TestDriftedConsumerIsUpdatedAtTheStart(t *testing.T) {
	t.Parallel()
	b := open(t)
	var s seen
	handler := func(_ context.Context, e *listener.Event) error { s.note(e); return nil }
	stop := run(t, b, listener.Spec{Handler: handler})
	kit.WaitFor(t, "the consumer exists", func() bool { return lag(t, b, "test") == 0 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	consumer, err := b.JetStream().Consumer(t.Context(), bus.StreamEvents, "test")
	if err != nil {
		t.Fatal(err)
	}
	config := consumer.CachedInfo().Config
	config.MaxDeliver, config.MaxAckPending = 3, 1
	if _, err := b.JetStream().UpdateConsumer(t.Context(), bus.StreamEvents, config); err != nil {
		t.Fatal(err)
	}
	run(t, b, listener.Spec{Handler: handler})
	publish(t, b, 0, 1)
	kit.WaitFor(t, "it is handled", func() bool { return s.distinct() == 1 })
	consumer, err = b.JetStream().Consumer(t.Context(), bus.StreamEvents, "test")
	if err != nil {
		t.Fatal(err)
	}
	if c := consumer.CachedInfo().Config; c.MaxDeliver != -1 || c.MaxAckPending < 1000 {
		t.Errorf("events may be dropped: MaxDeliver %d, MaxAckPending %d", c.MaxDeliver, c.MaxAckPending)
	}
}

func TestDriftedConsumerIsUpdatedWhileItRuns(t *testing.T) {
	t.Parallel()
	b := open(t)
	var s seen
	run(t, b, listener.Spec{Concurrency: 16,
		Handler: func(_ context.Context, e *listener.Event) error { s.note(e); return nil }})
	publish(t, b, 0, 10)
	kit.WaitFor(t, "ten are handled", func() bool { return s.distinct() == 10 && lag(t, b, "test") == 0 })
	consumer, err := b.JetStream().Consumer(t.Context(), bus.StreamEvents, "test")
	if err != nil {
		t.Fatal(err)
	}
	config := consumer.CachedInfo().Config
	config.MaxRequestBatch = 1
	if _, err := b.JetStream().UpdateConsumer(t.Context(), bus.StreamEvents, config); err != nil {
		t.Fatal(err)
	}
	publish(t, b, 10, 100)
	kit.WaitFor(t, "all are handled", func() bool { return s.distinct() == 100 && lag(t, b, "test") == 0 })
}

func TestSetupErrorIsLoggedOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	if err := b.JetStream().DeleteStream(t.Context(), bus.StreamEvents); err != nil {
		t.Fatal(err)
	}
	asked, err := b.Conn().SubscribeSync("$JS.API.CONSUMER.INFO.EVENTS.test")
	if err != nil {
		t.Fatal(err)
	}
	var text lines
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- listener.Run(ctx, b, slog.New(slog.NewTextHandler(&text, nil)), listener.Spec{
			Name: "test", Filters: []string{"events.>"},
			Handler: func(context.Context, *listener.Event) error { return nil },
		})
	}()
	kit.WaitFor(t, "it was retried several times", func() bool { n, _, _ := asked.Pending(); return n > 3 })
	if err := asked.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := text.count("level=WARN"); n != 1 {
		t.Errorf("%d warnings, want one:\n%s", n, text.String())
	}
}

func TestStopDoesNotWaitForAStoppedServer(t *testing.T) {
	t.Parallel()
	b := open(t)
	stop := run(t, b, listener.Spec{Handler: func(context.Context, *listener.Event) error { return nil }})
	kit.WaitFor(t, "the consumer exists", func() bool { return lag(t, b, "test") == 0 })
	if err := b.StopServer(); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	kit.WaitFor(t, "it has stopped", func() bool { return len(stopped) == 1 })
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
}

// dead returns the ids of the events of the dead letters, sorted.
func dead(t *testing.T, b *bus.Bus) []string {
	t.Helper()
	var ids []string
	for _, letter := range letters(t, b) {
		e, err := event.Decode(letter.Data)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.ID)
	}
	slices.Sort(ids)
	return ids
}
