package listener_test

import (
	"context"
	"testing"
	"time"

	"belfry/pkg/event"
	"belfry/pkg/listener"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

func TestTheBussClockIsBehindOnlyWhenItWasSetBack(t *testing.T) {
	start := time.Now()
	local := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	bus := func(seconds float64) time.Time { return local(seconds - 7*60) } // its clock differs from ours
	for name, c := range map[string]struct {
		see  func(*listener.BusClock)
		back float64 // by the check between 10 and 12 s, where the clock shows 11 s
	}{
		"the first check":           {func(*listener.BusClock) {}, 0},
		"a check before":            {func(c *listener.BusClock) { c.Check(bus(5), local(4), local(6)) }, 0},
		"the clock was slow":        {func(c *listener.BusClock) { c.Check(bus(5), local(5), local(5)) }, 0},
		"the clock was set forward": {func(c *listener.BusClock) { c.Check(bus(-3600), local(5), local(5)) }, 0},
		"the clock was set back": {func(c *listener.BusClock) { c.Check(bus(3605), local(5), local(5)) },
			3599},
		"an event was stored": {func(c *listener.BusClock) { c.Saw(bus(4), local(5)) }, 0},
		"an old event is delivered": {func(c *listener.BusClock) {
			c.Check(bus(5), local(5), local(5))
			c.Saw(bus(-9999), local(6))
		}, 0},
		"forward and back between checks": {func(c *listener.BusClock) {
			c.Check(bus(5), local(5), local(5))
			c.Saw(bus(3606), local(6))
		}, 3599},
	} {
		var clock listener.BusClock
		c.see(&clock)
		if back := clock.Check(bus(11), local(10), local(12)); back.Seconds() != c.back {
			t.Errorf("%s: set back by %s, want %v s", name, back, c.back)
		}
		if back := clock.Check(bus(21), local(20), local(22)); back != 0 {
			t.Errorf("%s: set back by %s again", name, back)
		}
	}
}

// TestAnEventThatWaitsForTheBussClockIsRedelivered has an event that the bus is to redeliver in an hour, as
// it does when its clock is set back by an hour: the worker that had it is gone.
func TestAnEventThatWaitsForTheBussClockIsRedelivered(t *testing.T) {
	t.Parallel()
	b := open(t)
	var handled seen
	spec := listener.Spec{
		Name: "test", Filters: []string{event.Filter(event.StoreSaved, "Books")}, AckWait: ackWait,
		Start:   listener.StartAll(),
		Handler: func(_ context.Context, e *listener.Event) error { handled.note(e); return nil },
	}
	if _, err := listener.Setup(t.Context(), b, spec, false); err != nil {
		t.Fatal(err)
	}
	const events = 20
	publish(t, b, 0, events)
	consumer, err := b.JetStream().Consumer(t.Context(), "EVENTS", "test")
	if err != nil {
		t.Fatal(err)
	}
	batch, err := consumer.Fetch(events, natsserver.Wait()...)
	if err != nil {
		t.Fatal(err)
	}
	for m := range batch.Messages() {
		if err := m.NakWithDelay(time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	publish(t, b, events, events+1)
	run(t, b, spec)
	kit.WaitFor(t, "the event after them is handled", func() bool { return handled.distinct() == 1 })
	if err := listener.Renew(t.Context(), b, spec); err != nil {
		t.Fatal(err)
	}
	kit.WaitFor(t, "the events are redelivered",
		func() bool { return handled.distinct() == events+1 && lag(t, b, "test") == 0 })
}

// TestEventsThatWaitSinceBeforeTheStartAreRedelivered is what follows when the bus's clock was set back while
// neither the bus nor the listener ran: nothing shows the step.
func TestEventsThatWaitSinceBeforeTheStartAreRedelivered(t *testing.T) {
	t.Parallel()
	b := open(t)
	var handled seen
	spec := listener.Spec{
		Name: "test", Filters: []string{event.Filter(event.StoreSaved, "Books")}, AckWait: 3 * time.Second,
		Start:   listener.StartAll(),
		Handler: func(_ context.Context, e *listener.Event) error { handled.note(e); return nil },
	}
	if _, err := listener.Setup(t.Context(), b, spec, false); err != nil {
		t.Fatal(err)
	}
	publish(t, b, 0, 1)
	consumer, err := b.JetStream().Consumer(t.Context(), "EVENTS", "test")
	if err != nil {
		t.Fatal(err)
	}
	m, err := consumer.Next(natsserver.Wait()...)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.NakWithDelay(time.Hour); err != nil {
		t.Fatal(err)
	}
	run(t, b, spec)
	kit.WaitFor(t, "the event is redelivered", func() bool { return handled.distinct() == 1 && lag(t, b, "test") == 0 })
}

// TestEventsThatWaitAlthoughNobodySawAStepAreRedelivered is what follows when the bus's clock was set forward and back
// between two looks at it: a worker that is gone received an event meanwhile.
func TestEventsThatWaitAlthoughNobodySawAStepAreRedelivered(t *testing.T) {
	t.Parallel()
	b := open(t)
	var handled seen
	spec := listener.Spec{
		Name: "test", Filters: []string{event.Filter(event.StoreSaved, "Books")}, AckWait: 3 * time.Second, Start: listener.StartAll(),
		Handler: func(_ context.Context, e *listener.Event) error { handled.note(e); return nil },
	}
	run(t, b, spec)
	publish(t, b, 0, 1)
	kit.WaitFor(t, "the listener handles an event",
		func() bool { return handled.distinct() == 1 && lag(t, b, "test") == 0 })
	consumer, err := b.JetStream().Consumer(t.Context(), "EVENTS", "test")
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan error, 1)
	go func() {
		m, err := consumer.Next(natsserver.Wait()...)
		if err == nil {
			err = m.NakWithDelay(time.Hour)
		}
		gone <- err
	}()
	published := 1
	kit.WaitFor(t, "another worker receives an event", func() bool {
		publish(t, b, published, published+1)
		published++
		select {
		case err = <-gone:
			return true
		default:
			return false
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	kit.WaitFor(t, "the event is redelivered",
		func() bool { return handled.distinct() == published && lag(t, b, "test") == 0 })
}
