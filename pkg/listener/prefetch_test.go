package listener_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"belfry/pkg/bus"
	"belfry/pkg/listener"
	"belfry/test/wait"
)

// unacked is how many events the bus has handed out and heard nothing of.
func unacked(t testing.TB, b *bus.Bus) int {
	t.Helper()
	_, n, err := listener.Lag(t.Context(), b, "test")
	if err != nil {
		return 0
	}
	return int(n)
}

// holding runs a listener that is quick with the first 100 events, so that
// others are fetched ahead, and stands still at event e100 until release.
func holding(t *testing.T, b *bus.Bus, s *seen, ackWait time.Duration) (release func(), stop func() error) {
	t.Helper()
	hold := make(chan struct{})
	stop = start(t, b, listener.Spec{Start: listener.All, AckWait: ackWait, Handler: func(_ context.Context, e *listener.Event) error {
		s.note(e)
		if e.Attempt != 1 {
			t.Errorf("event %s is handed out for the %d. time", e.ID, e.Attempt)
		}
		if e.ID == "e100" {
			<-hold
		}
		return nil
	}})
	wait.For(t, "it stands still, with others fetched ahead", func() bool { return len(s.all()) == 101 && unacked(t, b) > 50 })
	return func() { close(hold) }, stop
}

func TestWhatIsFetchedAheadIsKeptAlive(t *testing.T) {
	b := open(t)
	publish(t, b, 0, 200)
	var s seen
	release, _ := holding(t, b, &s, 200*time.Millisecond)
	began := time.Now()
	wait.For(t, "several times AckWait have passed", func() bool { return time.Since(began) > time.Second })
	release()
	wait.For(t, "all are handled", func() bool { return s.distinct() == 200 && lag(t, b, "test") == 0 })
	if n := len(s.all()); n != 200 {
		t.Errorf("%d calls for 200 events", n)
	}
}

// TestWhatIsFetchedAheadIsGivenBackAtAStop has an AckWait that is longer than
// the test waits.
func TestWhatIsFetchedAheadIsGivenBackAtAStop(t *testing.T) {
	b := open(t)
	publish(t, b, 0, 200)
	var s seen
	release, stop := holding(t, b, &s, time.Hour)
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	asks, err := b.JetStream().Consumer(t.Context(), bus.StreamEvents, "test")
	if err != nil {
		t.Fatal(err)
	}
	wait.For(t, "it asks for no more", func() bool {
		info, err := asks.Info(t.Context())
		return err == nil && info.NumWaiting == 0
	})
	release()
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	if n := len(s.all()); n != 101 {
		t.Errorf("%d events were handled by the one that stops, want 101", n)
	}
	var rest seen
	start(t, b, listener.Spec{Start: listener.All, AckWait: time.Hour, Handler: func(_ context.Context, e *listener.Event) error { rest.note(e); return nil }})
	wait.For(t, "the others are handled", func() bool { return rest.distinct() == 99 && lag(t, b, "test") == 0 })
}

// TestStoppingUnderLoadLosesNothing stops a listener again and again while
// events arrive; what was on its way to it comes back at once.
func TestStoppingUnderLoadLosesNothing(t *testing.T) {
	b := open(t)
	const rounds, each = 20, 200
	var s seen
	handler := func(_ context.Context, e *listener.Event) error { s.note(e); return nil }
	for round := range rounds {
		stop := start(t, b, listener.Spec{Start: listener.All, AckWait: time.Hour, Concurrency: 1 + round%3, Handler: handler})
		publish(t, b, round*each, (round+1)*each)
		wait.For(t, "some are handled", func() bool { return s.distinct() > round*each/2 })
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
	start(t, b, listener.Spec{Start: listener.All, AckWait: time.Hour, Handler: handler})
	wait.For(t, fmt.Sprintf("%d are handled", rounds*each), func() bool { return s.distinct() == rounds*each && lag(t, b, "test") == 0 })
	if n := len(s.all()); n != rounds*each {
		t.Errorf("%d calls for %d events", n, rounds*each)
	}
}

// TestASlowListenerLeavesEventsToOthers has two processes share slow work.
func TestASlowListenerLeavesEventsToOthers(t *testing.T) {
	b := open(t)
	var one, two seen
	release := make(chan struct{})
	slow := func(s *seen) listener.Handler {
		return func(_ context.Context, e *listener.Event) error {
			s.note(e)
			select {
			case <-release:
			case <-time.After(150 * time.Millisecond):
			}
			return nil
		}
	}
	start(t, b, listener.Spec{Start: listener.All, Handler: slow(&one)})
	publish(t, b, 0, 100)
	wait.For(t, "the first knows that it is slow", func() bool { return one.distinct() >= 2 })
	start(t, b, listener.Spec{Start: listener.All, Handler: slow(&two)})
	wait.For(t, "the second has work too", func() bool { return two.distinct() >= 2 })
	if n := one.distinct(); n > 50 {
		t.Errorf("the first has handled %d", n)
	}
	close(release)
	wait.For(t, "all are handled", func() bool { return one.distinct()+two.distinct() == 100 && lag(t, b, "test") == 0 })
}
