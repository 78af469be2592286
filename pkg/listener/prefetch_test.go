package listener_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/listener"
	"belfry/test/kit"
)

// holder is a listener that is fast, so that events are prefetched, and blocks at
// an event when enough of them are.
type holder struct {
	seen
	handled int // events that are not fetched ahead: those before it, and itself
	cancel  context.CancelFunc
	done    chan error
	release func()
}

// holding runs a holder of the events e0 to e<published>.
func holding(t *testing.T, b *bus.Bus, published int, ackWait time.Duration) *holder {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	h := &holder{cancel: cancel, done: make(chan error, 1)}
	hold, at, goOn := make(chan struct{}), make(chan struct{}), make(chan struct{})
	h.release = sync.OnceFunc(func() { close(hold) })
	spec := listener.Spec{Name: "test", Start: listener.StartAll(), AckWait: ackWait,
		Handler: func(_ context.Context, e *listener.Event) error {
			h.note(e)
			if e.Attempt != 1 {
				t.Errorf("event %s is delivered with attempt %d", e.ID, e.Attempt)
			}
			if e.Sequence%100 == 0 {
				select {
				case at <- struct{}{}:
				case <-hold:
					return nil
				}
				select {
				case <-goOn:
				case <-hold:
				}
			}
			return nil
		}}
	go func() { h.done <- listener.Run(ctx, b, slog.New(slog.DiscardHandler), spec) }()
	t.Cleanup(func() { h.release(); _ = h.stop() })
	for h.handled < published {
		<-at
		h.handled += 100
		var info *jetstream.ConsumerInfo
		kit.WaitFor(t, "the events before it are acknowledged", func() bool {
			info = consumerOf(t, b)
			return info.AckFloor.Stream == uint64(h.handled)-1
		})
		// A stall of the machine makes fast work slow, for which few events are
		// prefetched.
		if info.NumAckPending > 50 {
			return h
		}
		goOn <- struct{}{}
	}
	t.Fatal("no more than 50 events were ever fetched ahead")
	return nil
}

// stop stops the holder.
func (h *holder) stop() error {
	h.cancel()
	err := <-h.done
	h.done <- err
	return err
}

func TestPrefetchedEventsAreHeartbeated(t *testing.T) {
	t.Parallel()
	const published = 2000
	b := open(t)
	publish(t, b, 0, published)
	h := holding(t, b, published, ackWait)
	began := time.Now()
	kit.WaitFor(t, "more than AckWait has passed", func() bool { return time.Since(began) > ackWait*4/3 })
	h.release()
	kit.WaitFor(t, "all are handled", func() bool { return h.distinct() == published && lag(t, b, "test") == 0 })
	if n := len(h.all()); n != published {
		t.Errorf("%d calls for %d events", n, published)
	}
}

// TestPrefetchedEventsAreReturnedAtAStop has an AckWait that is longer than the
// limit of its waits.
func TestPrefetchedEventsAreReturnedAtAStop(t *testing.T) {
	t.Parallel()
	const published = 2000
	b := open(t)
	publish(t, b, 0, published)
	h := holding(t, b, published, time.Hour)
	h.cancel()
	asks, err := b.JetStream().Consumer(t.Context(), bus.StreamEvents, "test")
	if err != nil {
		t.Fatal(err)
	}
	kit.WaitFor(t, "it requests no more", func() bool {
		info, err := asks.Info(t.Context())
		return err == nil && info.NumWaiting == 0
	})
	h.release()
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	if n := len(h.all()); n != h.handled {
		t.Errorf("%d events were handled by the stopped listener, want %d", n, h.handled)
	}
	var rest seen
	start(t, b, listener.Spec{Start: listener.StartAll(), AckWait: time.Hour,
		Handler: func(_ context.Context, e *listener.Event) error { rest.note(e); return nil }})
	kit.WaitFor(t, "the others are handled",
		func() bool { return rest.distinct() == published-h.handled && lag(t, b, "test") == 0 })
}

// TestStopUnderLoadLosesNoEvent stops a listener repeatedly while events arrive;
// events that were being delivered to it are redelivered at once.
func TestStopUnderLoadLosesNoEvent(t *testing.T) {
	t.Parallel()
	b := open(t)
	const rounds, each = 20, 200
	var s seen
	handler := func(_ context.Context, e *listener.Event) error { s.note(e); return nil }
	for round := range rounds {
		stop := start(t, b,
			listener.Spec{Start: listener.StartAll(), AckWait: time.Hour, Concurrency: 1 + round%3, Handler: handler})
		publish(t, b, round*each, (round+1)*each)
		kit.WaitFor(t, "some are handled", func() bool { return s.distinct() > round*each/2 })
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
	start(t, b, listener.Spec{Start: listener.StartAll(), AckWait: time.Hour, Handler: handler})
	kit.WaitFor(t, fmt.Sprintf("%d are handled", rounds*each),
		func() bool { return s.distinct() == rounds*each && lag(t, b, "test") == 0 })
	if n := len(s.all()); n != rounds*each {
		t.Errorf("%d calls for %d events", n, rounds*each)
	}
}

// TestSlowListenerPrefetchesFewEvents has two listeners share slow work: while the
// first is blocked, the second handles nearly all of it.
func TestSlowListenerPrefetchesFewEvents(t *testing.T) {
	t.Parallel()
	b := open(t)
	var one, two seen
	release := make(chan struct{})
	start(t, b, listener.Spec{Start: listener.StartAll(), Handler: func(_ context.Context, e *listener.Event) error {
		one.note(e)
		if one.distinct() < 3 {
			<-time.After(150 * time.Millisecond) // it is slow
		} else {
			<-release
		}
		return nil
	}})
	publish(t, b, 0, 100)
	kit.WaitFor(t, "the first has measured its duration", func() bool { return one.distinct() == 3 })
	start(t, b, listener.Spec{Start: listener.StartAll(),
		Handler: func(_ context.Context, e *listener.Event) error { two.note(e); return nil }})
	kit.WaitFor(t, "the second has most of the work", func() bool { return two.distinct() >= 90 })
	close(release)
	kit.WaitFor(t, "all are handled",
		func() bool { return one.distinct()+two.distinct() == 100 && lag(t, b, "test") == 0 })
}

// While all slots are in use, each event that ends frees one.
func TestOneRequestIsMadeForSeveralEventsThatEnd(t *testing.T) {
	for handled, want := range map[int]int{1: 480, 16: 480, 64: 120, 1024: 7} {
		if got := listener.Requested(t.Context(), handled, 480); got != want {
			t.Errorf("with %d events handled at once there are %d requests for 480, want %d", handled, got, want)
		}
	}
}
