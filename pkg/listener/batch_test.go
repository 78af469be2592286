package listener_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"belfry/pkg/listener"
	"belfry/test/kit"
)

// batches records the batches of a handler.
type batches struct {
	seen
	mu    sync.Mutex
	sizes []int
}

func (s *batches) note(all []*listener.Event) {
	s.mu.Lock()
	s.sizes = append(s.sizes, len(all))
	s.mu.Unlock()
	for _, e := range all {
		s.seen.note(e)
	}
}

func (s *batches) largest() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Max(append(s.sizes, 0))
}

func TestBatchHasTheWaitingEvents(t *testing.T) {
	t.Parallel()
	const size, each, rounds = 40, 300, 10
	const least = size - size/listener.RequestShare // the last slots wait until they are enough for a request
	b := open(t)
	var s batches
	start(t, b, listener.Spec{Start: listener.StartAll(), BatchSize: size,
		Batch: func(_ context.Context, all []*listener.Event) []error {
			s.note(all)
			kit.WaitFor(t, "the prefetch limit is reached", func() bool {
				pending, unacked, err := listener.Lag(t.Context(), b, "test")
				return err == nil && (pending == 0 || unacked >= least)
			})
			return nil
		}})
	// The prefetch limit is reached, so one batch or the next is at least half full,
	// unless the events are still being delivered.
	published := 0
	for s.largest() < size/2 {
		if published == rounds*each {
			t.Fatalf("of %d events the largest batch has %d, want at least %d", published, s.largest(), size/2)
		}
		publish(t, b, published, published+each)
		published += each
		kit.WaitFor(t, "all are handled", func() bool { return s.distinct() == published && lag(t, b, "test") == 0 })
	}
	if n := s.largest(); n > size {
		t.Errorf("the largest batch has %d events, want at most %d", n, size)
	}
	if n := len(s.all()); n != published {
		t.Errorf("%d events were handled, want %d", n, published)
	}
}

func TestEachEventOfABatchHasItsOwnError(t *testing.T) {
	t.Parallel()
	b := open(t)
	publish(t, b, 0, 50)
	var s batches
	start(t, b, listener.Spec{Start: listener.StartAll(), MaxAttempts: 3,
		Batch: func(_ context.Context, all []*listener.Event) []error {
			s.note(all)
			failed := make([]error, len(all))
			for i, e := range all {
				switch {
				case e.ID == "e7":
					failed[i] = listener.Permanent(errors.New("never"))
				case e.ID == "e8":
					failed[i] = errors.New("not this one")
				case e.ID == "e9" && e.Attempt < 3:
					failed[i] = errors.New("not now")
				}
			}
			return failed
		}})
	kit.WaitFor(t, "all are acknowledged", func() bool { return s.distinct() == 50 && lag(t, b, "test") == 0 })
	counts := map[string]int{}
	for _, id := range s.all() {
		counts[id]++
	}
	for id, want := range map[string]int{"e7": 1, "e8": 3, "e9": 3, "e10": 1} {
		if counts[id] != want {
			t.Errorf("%s was tried %d times, want %d", id, counts[id], want)
		}
	}
	if got := dead(t, b); !slices.Equal(got, []string{"e7", "e8"}) {
		t.Errorf("the dead letters are %v", got)
	}
}

// TestFailingEventDoesNotFailTheOthersOfItsBatch has a handler that can't say which
// event is at fault, such as one that writes all in one transaction.
func TestFailingEventDoesNotFailTheOthersOfItsBatch(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(n int) []error{
		"error": func(n int) []error { return slices.Repeat([]error{errors.New("one of them is bad")}, n) },
		"panic": func(int) []error { panic("one of them is bad") },
	} {
		for _, attempts := range []int{0, 3} {
			t.Run(fmt.Sprintf("%s, %d attempts", name, attempts), func(t *testing.T) {
				b := open(t)
				publish(t, b, 0, 30)
				var done seen
				start(t, b, listener.Spec{Start: listener.StartAll(), MaxAttempts: attempts,
					Batch: func(_ context.Context, all []*listener.Event) []error {
						if slices.ContainsFunc(all, func(e *listener.Event) bool { return e.ID == "e3" }) {
							return fail(len(all))
						}
						for _, e := range all {
							done.note(e)
						}
						return nil
					}})
				if kit.WaitFor(t, "all others are done", func() bool { return done.distinct() == 29 }); attempts == 0 {
					return // it is retried without limit
				}
				kit.WaitFor(t, "it is a dead letter", func() bool { return lag(t, b, "test") == 0 })
				if got := dead(t, b); !slices.Equal(got, []string{"e3"}) {
					t.Errorf("the dead letters are %v", got)
				}
			})
		}
	}
}

func TestTimeoutCancelsABatch(t *testing.T) {
	t.Parallel()
	b := open(t)
	publish(t, b, 0, 5)
	var s batches
	start(t, b, listener.Spec{Start: listener.StartAll(), Timeout: 20 * time.Millisecond,
		Batch: func(ctx context.Context, all []*listener.Event) []error {
			s.note(all)
			failed := make([]error, len(all))
			for i, e := range all {
				if e.Attempt == 1 {
					<-ctx.Done()
					failed[i] = ctx.Err()
				}
			}
			return failed
		}})
	kit.WaitFor(t, "second attempts succeed", func() bool { return len(s.all()) >= 10 && lag(t, b, "test") == 0 })
}
