package copies

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/mapping"
)

// fixture are rounds that take some time, and record when they begin.
type fixture struct {
	*Worker
	takes time.Duration

	mu    sync.Mutex
	began map[string][]time.Time // by uuid
	ended sync.WaitGroup
}

func newFixture() *fixture {
	f := &fixture{Worker: &Worker{}, began: map[string][]time.Time{}}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.running = map[source]*runner{}
	f.run = func(ctx context.Context, s source) (*mapping.Rest, error) {
		f.mu.Lock()
		f.began[s.uuid] = append(f.began[s.uuid], time.Now())
		f.mu.Unlock()
		select {
		case <-time.After(f.takes):
		case <-ctx.Done():
		}
		return nil, ctx.Err()
	}
	return f
}

// event handles an event in the background, and requires that a round begins after it and within a time.
func (f *fixture) event(t *testing.T, uuid string, c cause, within time.Duration) {
	arrived := time.Now()
	ticket := f.join(source{uuid: uuid}, c)
	f.ended.Go(func() {
		if _, err := ticket.wait(t.Context()); err != nil {
			t.Error(err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, began := range f.began[uuid] {
			if wait := began.Sub(arrived); wait >= 0 {
				if wait > within {
					t.Errorf("an event waits %s for its round, want at most %s", wait, within)
				}
				return
			}
		}
		t.Error("no round began after the event")
	})
}

// idle requires that no event waits and no runner is left after the last rest.
func (f *fixture) idle(t *testing.T) {
	f.ended.Wait()
	time.Sleep(restFor)
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.running) > 0 || f.resting != 0 {
		t.Errorf("%d runners and %d events are left", len(f.running), f.resting)
	}
}

var aggregates = cause{aggregates: true}

func TestRoundsOfAggregatesRest(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{0, 300 * time.Millisecond, 1500 * time.Millisecond} {
		t.Run(fmt.Sprint(takes), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture()
				f.takes = takes
				for range 500 { // five seconds
					f.event(t, "hot", aggregates, max(restFor, takes))
					time.Sleep(10 * time.Millisecond)
				}
				f.event(t, "other", aggregates, 0)
				f.idle(t)
				began := f.began["hot"]
				for i := 1; i < len(began); i++ {
					if pause := began[i].Sub(began[i-1]); pause < restFor {
						t.Errorf("round %d begins %s after the one before", i, pause)
					}
				}
				if len(began) < 4 || len(began) > 7 {
					t.Errorf("%d rounds", len(began))
				}
			})
		})
	}
}

// Whatever else has changed, and what a request waits for, is copied at once.
func TestOtherRoundsDoNotRest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]cause{
		"another change": {}, "awaited": {awaited: true}, "awaited aggregates": {aggregates: true, awaited: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture()
				f.event(t, "x", aggregates, 0)
				time.Sleep(10 * time.Millisecond)
				f.event(t, "x", aggregates, 10*time.Millisecond) // with the next one
				time.Sleep(10 * time.Millisecond)
				f.event(t, "x", c, 0)
				time.Sleep(10 * time.Millisecond)
				f.event(t, "x", c, 0)
				time.Sleep(10 * time.Millisecond)
				f.event(t, "x", aggregates, restFor)
				f.idle(t)
				began := f.began["x"]
				if len(began) != 4 || began[3].Sub(began[2]) < restFor {
					t.Errorf("%d rounds, want 4, the last one after a rest", len(began))
				}
			})
		})
	}
}

// Events that wait for rounds that rest leave half of the listener to others.
func TestRoundsDoNotRestWhileManyEventsWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		for i := range mostResting + 10 {
			uuid := fmt.Sprint(i)
			f.event(t, uuid, aggregates, 0)
		}
		f.ended.Wait()
		for i := range mostResting {
			f.event(t, fmt.Sprint(i), aggregates, restFor)
		}
		f.event(t, fmt.Sprint(mostResting), aggregates, 0)
		f.event(t, "0", aggregates, 0) // with the event of this source that rests
		f.event(t, fmt.Sprint(mostResting+1), aggregates, restFor)
		f.idle(t)
	})
}

func TestAStopEndsRests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.event(t, "x", aggregates, 0)
		f.event(t, "y", aggregates, 0)
		f.ended.Wait()
		rests := f.join(source{uuid: "x"}, aggregates)
		began := time.Now()
		f.Close()
		if _, err := rests.wait(t.Context()); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if _, err := f.join(source{uuid: "x"}, aggregates).wait(t.Context()); errs.KindOf(err) != errs.Canceled {
			t.Error(err)
		}
		if waited := time.Since(began); waited > 0 || len(f.running) > 0 {
			t.Errorf("Close waited %s and left %d runners", waited, len(f.running))
		}
	})
}
