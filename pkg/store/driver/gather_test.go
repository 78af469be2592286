package driver_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"belfry/pkg/store/driver"
)

var errOdd = errors.New("odd")

// gathered is a Gatherer whose acts wait to be let go.
type gathered struct {
	driver.Gatherer[int]
	gate chan struct{}

	mu    sync.Mutex
	acts  [][]int
	ended bool // the context of an act ended
}

func gather(lanes, most int) *gathered {
	g := &gathered{gate: make(chan struct{})}
	g.Lanes, g.Most = lanes, most
	g.Act = func(ctx context.Context, items []int) []error {
		g.mu.Lock()
		g.acts = append(g.acts, slices.Clone(items))
		g.mu.Unlock()
		results := make([]error, len(items))
		select {
		case <-g.gate:
		case <-ctx.Done():
			g.ended = true
		}
		for i, item := range items {
			if item%2 == 1 {
				results[i] = errOdd
			}
		}
		return results
	}
	return g
}

func TestGatherer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gather(2, 3)
		var calls sync.WaitGroup
		for i := range 9 {
			calls.Go(func() {
				if err := g.Do(t.Context(), i); (err == errOdd) != (i%2 == 1) { //nolint:errorlint // it is this very error
					t.Errorf("call %d got the result %v", i, err)
				}
			})
			synctest.Wait()
		}
		for _, want := range []int{2, 3, 4, 5, 5} {
			if len(g.acts) != want {
				t.Errorf("%v were begun, want %d", g.acts, want)
			}
			g.gate <- struct{}{}
			synctest.Wait()
		}
		calls.Wait()
		if want := [][]int{{0}, {1}, {2, 3, 4}, {5, 6, 7}, {8}}; !slices.EqualFunc(g.acts, want, slices.Equal) {
			t.Errorf("the acts were %v, want %v", g.acts, want)
		}
	})
}

func TestGathererGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gather(1, 10)
		ctx, cancel := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		canceled := func(i int) {
			calls.Go(func() {
				if err := g.Do(ctx, i); !errors.Is(err, context.Canceled) {
					t.Errorf("call %d got the result %v", i, err)
				}
			})
			synctest.Wait()
		}
		calls.Go(func() { _ = g.Do(t.Context(), 0) })
		synctest.Wait()
		canceled(2)
		calls.Go(func() {
			if err := g.Do(t.Context(), 4); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		g.gate <- struct{}{} // 2 and 4 go together
		synctest.Wait()
		canceled(6)
		cancel()
		synctest.Wait()
		g.gate <- struct{}{}
		calls.Wait()
		if want := [][]int{{0}, {2, 4}}; g.ended || !slices.EqualFunc(g.acts, want, slices.Equal) {
			t.Errorf("the acts were %v, ended early: %v, want %v", g.acts, g.ended, want)
		}
		g.gate = nil
		alone, end := context.WithCancel(t.Context())
		end()
		_ = g.Do(alone, 8)
		if !g.ended {
			t.Error("an act of one call goes on when that call is given up")
		}
	})
}
