package listener_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"belfry/pkg/bus"
	"belfry/pkg/event"
	"belfry/pkg/listener"
	"belfry/test/kit"
)

// revisions returns events of some objects in turn, with increasing revisions.
func revisions(from, to, objects int) []event.Envelope {
	var all []event.Envelope
	for i := from; i < to; i++ {
		all = append(all, event.Envelope{
			ID: fmt.Sprintf("e%d", i), Event: event.StoreUpdated, Store: "Books", UUID: fmt.Sprintf("b%d", i%objects),
			Revision: uint64(i + 1),
		})
	}
	return all
}

// order records the revision of each object that was handled last.
type order struct {
	mu   sync.Mutex
	last map[string]uint64
	all  map[string]bool
	back []string
}

func (o *order) note(e *listener.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil {
		o.last, o.all = map[string]uint64{}, map[string]bool{}
	}
	if e.Revision < o.last[e.UUID] {
		o.back = append(o.back, fmt.Sprintf("%s from %d to %d", e.UUID, o.last[e.UUID], e.Revision))
	}
	o.last[e.UUID], o.all[e.ID] = e.Revision, true
}

func (o *order) handled() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.all)
}

func (o *order) check(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.back) > 0 {
		t.Errorf("revisions went back: %v", o.back)
	}
}

func TestOrderedListenerKeepsTheOrderOfEachObject(t *testing.T) {
	t.Parallel()
	b := open(t)
	const total = 1200
	happen(t, b, revisions(0, total/2, 40)...)
	var o order
	handler := func(_ context.Context, e *listener.Event) error {
		switch {
		case e.Sequence%5 == 0 && e.Attempt == 1:
			return errors.New("not now")
		case e.Sequence%97 == 0 && e.Attempt == 2:
			panic("nor now")
		}
		o.note(e)
		return nil
	}
	spec := listener.Spec{Start: listener.StartAll(), Ordered: true, Handler: handler}
	start(t, b, spec) // runs throughout
	for round := range 5 {
		handled := o.handled()
		stop := start(t, b, spec)
		from := total/2 + round*total/10
		happen(t, b, revisions(from, from+total/10, 40)...)
		kit.WaitFor(t, "some are handled", func() bool { return o.handled() > handled+50 || o.handled() == total })
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
	kit.WaitFor(t, "all are handled", func() bool { return o.handled() == total && lag(t, b, "test") == 0 })
	o.check(t)
}

func TestOrderedListenerHasOneEventOfAPartitionInFlight(t *testing.T) {
	t.Parallel()
	b := open(t)
	happen(t, b, revisions(0, 400, 400)...)
	var mu sync.Mutex
	inHand, most, most1 := map[int]int{}, 0, 0
	several := make(chan struct{})
	var once sync.Once
	var s seen
	start(t, b, listener.Spec{Start: listener.StartAll(), Ordered: true,
		Handler: func(_ context.Context, e *listener.Event) error {
			p := event.Partition(e.UUID)
			mu.Lock()
			inHand[p]++
			most1 = max(most1, inHand[p])
			sum := 0
			for _, n := range inHand {
				sum += n
			}
			most = max(most, sum)
			mu.Unlock()
			if sum > 1 {
				once.Do(func() { close(several) })
			}
			select {
			case <-several:
			case <-t.Context().Done(): // the test has failed
			}
			<-time.After(2 * time.Millisecond)
			mu.Lock()
			inHand[p]--
			mu.Unlock()
			s.note(e)
			return nil
		}})
	kit.WaitFor(t, "all are handled", func() bool { return s.distinct() == 400 && lag(t, b, "test") == 0 })
	if most1 != 1 || most < 2 {
		t.Errorf("at once %d events of a partition, want 1; %d of all, want several", most1, most)
	}
	consumer, err := b.JetStream().Consumer(t.Context(), bus.StreamEvents, "test-0")
	if err != nil {
		t.Fatal(err)
	}
	if n := consumer.CachedInfo().Config.MaxAckPending; n != 1 {
		t.Errorf("the bus delivers %d events of a partition, want 1", n)
	}
}

func TestOrderedListenerStopsDuringABackoff(t *testing.T) {
	t.Parallel()
	b := open(t)
	happen(t, b, revisions(0, 4, 1)...)
	var tried seen
	spec := listener.Spec{
		Start: listener.StartAll(), Ordered: true, Backoff: func(int) time.Duration { return time.Hour },
		Handler: func(_ context.Context, e *listener.Event) error { tried.note(e); return errors.New("not now") },
	}
	stop := start(t, b, spec)
	kit.WaitFor(t, "the first waits", func() bool { return tried.distinct() == 1 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	// The next process handles it at once, and before the later events.
	var o order
	spec.Handler = func(_ context.Context, e *listener.Event) error { o.note(e); return nil }
	start(t, b, spec)
	kit.WaitFor(t, "all are handled", func() bool { return o.handled() == 4 && lag(t, b, "test") == 0 })
	o.check(t)
	if n := len(tried.all()); n != 1 {
		t.Errorf("it was tried %d times in an hour", n)
	}
}

func TestPoisonMessageOfAnOrderedListenerMakesADeadLetter(t *testing.T) {
	t.Parallel()
	b := open(t)
	happen(t, b, revisions(0, 30, 3)...)
	var o order
	start(t, b, listener.Spec{Start: listener.StartAll(), Ordered: true, MaxAttempts: 3,
		Handler: func(_ context.Context, e *listener.Event) error {
			if e.ID == "e4" {
				return errors.New("never")
			}
			o.note(e)
			return nil
		}})
	kit.WaitFor(t, "all others are handled", func() bool { return o.handled() == 29 && lag(t, b, "test") == 0 })
	o.check(t)
	if got := dead(t, b); len(got) != 1 || got[0] != "e4" {
		t.Errorf("the dead letters are %v", got)
	}
}

func TestLagOfAnOrderedListenerIsTheSumOfItsPartitions(t *testing.T) {
	t.Parallel()
	b := open(t)
	var s seen
	release := make(chan struct{})
	start(t, b, listener.Spec{Start: listener.StartAll(), Ordered: true, Handler: func(_ context.Context, e *listener.Event) error {
		s.note(e)
		<-release
		return nil
	}})
	kit.WaitFor(t, "the consumers exist", func() bool { return lag(t, b, "test") == 0 })
	happen(t, b, revisions(0, 200, 100)...)
	partitions := map[int]bool{}
	for i := range 100 {
		partitions[event.Partition(fmt.Sprintf("b%d", i))] = true
	}
	kit.WaitFor(t, "one event of each partition is in flight", func() bool { return s.distinct() == len(partitions) })
	kit.WaitUntil(t, func() error { // the bus counts what is pending a little later
		pending, unacked, err := listener.Lag(t.Context(), b, "test")
		if err != nil || int(unacked) != len(partitions) || int(pending) != 200-len(partitions) {
			return fmt.Errorf("lag is %d and %d, %w; want %d and %d", pending, unacked, err, 200-len(partitions),
				len(partitions))
		}
		return nil
	})
	close(release)
	kit.WaitFor(t, "all are handled", func() bool { return s.distinct() == 200 && lag(t, b, "test") == 0 })
}
