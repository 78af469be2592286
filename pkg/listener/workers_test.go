package listener_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"belfry/pkg/listener"
	"belfry/test/kit"
)

// Workers are started for events, up to Concurrency. The test is not parallel: it counts goroutines.
func TestAListenerStartsAsManyWorkersAsItHasEventsForAtOnce(t *testing.T) {
	const concurrency, events = 300, 400
	b := open(t)
	var handling, handled atomic.Int64
	together := make(chan struct{})
	run(t, b, listener.Spec{Concurrency: concurrency, Handler: func(context.Context, *listener.Event) error {
		if handling.Add(1) == concurrency {
			close(together)
		}
		<-together // all workers have an event
		handled.Add(1)
		return nil
	}})
	kit.WaitFor(t, "events are requested", func() bool {
		c, err := b.JetStream().Consumer(t.Context(), "EVENTS", "test")
		return err == nil && c.CachedInfo().NumWaiting > 0
	})
	if n := workers(); n > 0 {
		t.Errorf("an idle listener has %d workers", n)
	}
	publish(t, b, 0, events)
	kit.WaitFor(t, "all events are handled", func() bool { return handled.Load() == events && lag(t, b, "test") == 0 })
	if n := workers(); n != concurrency {
		t.Errorf("%d workers after %d events at once, not %d", n, events, concurrency)
	}
}

// workers counts the goroutines of workers.
func workers() (n int) {
	for _, stack := range kit.Goroutines() {
		if strings.Contains(stack, "(*runner).work(") {
			n++
		}
	}
	return n
}
