package sweep_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/test/model"
)

// A full sweep asks the stores for some contents at once.
func TestSweepAllChecksSomeContentsAtOnce(t *testing.T) {
	t.Parallel()
	const contents, atOnce = 40, 16
	var inFlight, most atomic.Int64
	var gate chan struct{}
	f := newFixture(t, options{backend: func(b driver.Backend) driver.Backend {
		return &model.Hooked{Backend: b, BeforeGet: func(_ context.Context, name, uuid string) error {
			if gate == nil || name != "Contents" || !strings.HasPrefix(uuid, "files.") {
				return nil
			}
			n := inFlight.Add(1)
			defer inFlight.Add(-1)
			for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
			}
			if n == atOnce && gate != nil {
				select {
				case <-gate:
				default:
					close(gate)
				}
			}
			select {
			case <-gate:
				return nil
			case <-time.After(20 * time.Second):
				return errs.New(errs.Unavailable, "only %d contents are checked at once", n)
			}
		}}
	}})
	var texts []string
	for i := range contents {
		texts = append(texts, fmt.Sprint("text", i))
	}
	f.save("Books", "b", texts...)
	f.must(f.set.Store("Books").Delete(t.Context(), "b", 0))
	f.outbox.take() // dropped
	f.age()
	gate = make(chan struct{})
	f.must(f.worker.SweepAll(t.Context()))
	if n := most.Load(); n != atOnce {
		t.Errorf("%d contents were checked at once, want %d", n, atOnce)
	}
	f.wantEntries(contents)
}
