package driver_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"belfry/pkg/store/driver"
)

var errOdd = errors.New("odd")

// batchRecorder records the batches of a Batcher. Each batch blocks until it is released.
type batchRecorder struct {
	*driver.Batcher[int]
	release chan struct{}

	mu       sync.Mutex
	batches  [][]int
	canceled bool // the context of a batch ended
}

func newBatchRecorder(maxInFlight, maxItems int) *batchRecorder {
	r := &batchRecorder{release: make(chan struct{})}
	r.Batcher = driver.NewBatcher(maxInFlight, maxItems, func(ctx context.Context, items []int) []error {
		r.mu.Lock()
		r.batches = append(r.batches, slices.Clone(items))
		r.mu.Unlock()
		results := make([]error, len(items))
		select {
		case <-r.release:
		case <-ctx.Done():
			r.canceled = true
		}
		for i, item := range items {
			if item%2 == 1 {
				results[i] = errOdd
			}
		}
		return results
	})
	return r
}

func TestBatcherCombinesWaitingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newBatchRecorder(2, 3)
		var calls sync.WaitGroup
		for i := range 9 {
			calls.Go(func() {
				if err := r.Do(t.Context(), i); (err == errOdd) != (i%2 == 1) { //nolint:errorlint // it is this very error
					t.Errorf("call %d got the result %v", i, err)
				}
			})
			synctest.Wait()
		}
		for _, want := range []int{2, 3, 4, 5, 5} {
			if len(r.batches) != want {
				t.Errorf("the batches %v were started, want %d", r.batches, want)
			}
			r.release <- struct{}{}
			synctest.Wait()
		}
		calls.Wait()
		if want := [][]int{{0}, {1}, {2, 3, 4}, {5, 6, 7}, {8}}; !slices.EqualFunc(r.batches, want, slices.Equal) {
			t.Errorf("the batches were %v, want %v", r.batches, want)
		}
	})
}

func TestBatcherCancelsOnlyUnsharedBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newBatchRecorder(1, 10)
		ctx, cancel := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		canceled := func(i int) {
			calls.Go(func() {
				if err := r.Do(ctx, i); !errors.Is(err, context.Canceled) {
					t.Errorf("call %d got the result %v", i, err)
				}
			})
			synctest.Wait()
		}
		calls.Go(func() { _ = r.Do(t.Context(), 0) })
		synctest.Wait()
		canceled(2)
		calls.Go(func() {
			if err := r.Do(t.Context(), 4); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		r.release <- struct{}{} // 2 and 4 are in one batch
		synctest.Wait()
		canceled(6)
		cancel()
		synctest.Wait()
		r.release <- struct{}{}
		calls.Wait()
		synctest.Wait() // its batch has ended too
		if want := [][]int{{0}, {2, 4}}; r.canceled || !slices.EqualFunc(r.batches, want, slices.Equal) {
			t.Errorf("the batches were %v, canceled: %v, want %v", r.batches, r.canceled, want)
		}
		r.release = nil
		ended, end := context.WithCancel(t.Context())
		end()
		_ = r.Do(ended, 8)
		if !r.canceled {
			t.Error("a batch of one call is not canceled with its caller")
		}
	})
}

// Two batches get no reply. The calls that wait for them run together, beside them.
func TestCallsDoNotWaitForBatchesThatAreLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newBatchRecorder(2, 3)
		r.WithPatience(time.Second)
		var calls sync.WaitGroup
		call := func(i int) {
			calls.Go(func() {
				if err := r.Do(t.Context(), i); err != nil {
					t.Errorf("call %d got the result %v", i, err)
				}
			})
			synctest.Wait()
		}
		for i := range 7 {
			call(2 * i)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		slices.SortFunc(r.batches, slices.Compare) // the last two began at once
		if want := [][]int{{0}, {2}, {4, 6, 8}, {10, 12}}; !slices.EqualFunc(r.batches, want, slices.Equal) {
			t.Errorf("the batches are %v, want %v", r.batches, want)
		}
		for range 2 { // there are as many as allowed then
			r.release <- struct{}{}
		}
		synctest.Wait()
		call(14)
		if len(r.batches) != 4 {
			t.Errorf("a call does not wait: the batches are %v", r.batches)
		}
		for range 3 {
			r.release <- struct{}{}
		}
		calls.Wait()
		synctest.Wait()
		call(16)
		if want := []int{16}; !slices.Equal(r.batches[len(r.batches)-1], want) || len(r.batches) != 6 {
			t.Errorf("with nothing in flight, the batches are %v", r.batches)
		}
		r.release <- struct{}{}
		calls.Wait()
	})
}
