package listener_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/bus"
	"belfry/pkg/event"
	"belfry/pkg/listener"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

// An event whose handler ends the process never reaches the end of an attempt: only
// the count of its deliveries shows it.
func TestAnEventThatCrashesProcessesBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	b := open(t)
	var handled atomic.Int32
	spec := listener.Spec{
		Name: "test", Filters: []string{event.Filter(event.StoreSaved, "Books")}, Start: listener.StartAll(),
		MaxAttempts: 1, Handler: func(context.Context, *listener.Event) error { handled.Add(1); return nil },
	}
	// It returns when the consumer answers requests. That the consumer is there is to be seen before.
	if _, err := listener.Setup(t.Context(), b, spec, false); err != nil {
		t.Fatal(err)
	}
	publish(t, b, 0, 1)
	const limit = 2*1 + 10 // deliveries after which an event is a poison message
	consumer, err := b.JetStream().Consumer(t.Context(), bus.StreamEvents, "test")
	if err != nil {
		t.Fatal(err)
	}
	for range limit {
		m, err := consumer.Next(natsserver.Wait()...)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Nak(); err != nil {
			t.Fatal(err)
		}
	}
	stop := run(t, b, spec)
	kit.WaitFor(t, "the event is finished", func() bool {
		return handled.Load() > 0 || len(letters(t, b)) > 0
	})
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if n := handled.Load(); n != 0 {
		t.Errorf("the event was handled %d times", n)
	}
}

// A poison message crashes the process each time. What is suspected with it comes before it soon, so that it is not
// taken for one.
func TestASuspectComesBeforeAnyOtherInOneOfTwoAttempts(t *testing.T) {
	const within = time.Second
	for poison := uint64(1); poison < 60; poison++ {
		for innocent := poison + 1; innocent < 60; innocent++ {
			for _, more := range []int{0, 1} { // deliveries of one of them
				earlier := 0
				for attempt := 2; attempt < 4; attempt++ {
					a, b := listener.Isolation(innocent, attempt+more), listener.Isolation(poison, attempt)
					if a < 0 || a > within {
						t.Fatalf("event %d waits for %s", innocent, a)
					}
					if (a - b).Abs() < time.Millisecond {
						t.Errorf("events %d and %d come %s after each other", innocent, poison, a-b)
					}
					if a < b {
						earlier++
					}
				}
				if earlier != 1 {
					t.Errorf("event %d, delivered %d times more, comes before event %d in %d of two attempts", innocent,
						more, poison, earlier)
				}
			}
		}
	}
}
