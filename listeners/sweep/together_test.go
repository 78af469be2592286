package sweep_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"belfry/pkg/store/driver"
	"belfry/test/model"
)

// A full sweep asks the stores for some contents at once.
func TestSweepAllChecksSomeContentsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const contents, atOnce = 40, 16
		var waiting atomic.Int64
		var held atomic.Bool
		gate := make(chan struct{})
		f := newFixture(t, options{backend: func(b driver.Backend) driver.Backend {
			return &model.Hooked{Backend: b, BeforeGet: func(_ context.Context, name, uuid string) error {
				if held.Load() && name == "Contents" && strings.HasPrefix(uuid, "files.") {
					waiting.Add(1)
					<-gate
					waiting.Add(-1)
				}
				return nil
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
		held.Store(true)
		done := make(chan error, 1)
		go func() { done <- f.worker.SweepAll(t.Context()) }()
		synctest.Wait()
		if n := waiting.Load(); n != atOnce {
			t.Errorf("%d contents are checked at once, want %d", n, atOnce)
		}
		held.Store(false)
		close(gate)
		f.must(<-done)
		f.wantEntries(contents)
	})
}
