package verify_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"belfry/pkg/mapping/verify"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/test/model"
)

// hold holds calls until it is opened.
type hold struct {
	on      atomic.Bool
	waiting atomic.Int64
	until   chan struct{}
}

func (h *hold) wait() {
	if h.on.Load() {
		h.waiting.Add(1)
		<-h.until
		h.waiting.Add(-1)
	}
}

func (h *hold) open() {
	h.on.Store(false)
	close(h.until)
}

// The sources of copies are read, and copies repaired, for some objects at once.
func TestSomeCopiesAreVerifiedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const books, atOnce = 40, 16
		reads, writes := &hold{until: make(chan struct{})}, &hold{until: make(chan struct{})}
		backend := &model.Hooked{
			Backend: model.NewMemory(),
			BeforeGet: func(_ context.Context, name, _ string) error {
				if name == "Authors" {
					reads.wait()
				}
				return nil
			},
			BeforePut: func(context.Context, string, driver.Write) error {
				writes.wait()
				return nil
			},
		}
		set, err := model.OpenSet(t.Context(), backend, []store.Mapping{{Source: "Books", Target: "Authors", Key: "author"}},
			func(o *store.Options) {
				o.Arrays = nil
				if o.Name == "Authors" {
					o.CopiedFrom = []string{"name"}
					return
				}
				o.References = []store.Reference{{Field: "author", Target: "Authors", Indexed: true}}
				o.Copies = []store.Copy{{Field: "by", Reference: "author", Source: "Authors", From: "name"}}
			})
		f := &fixture{t, set}
		f.must(err)
		for i := range books { // without a worker, they get no copies of authors that are created later
			f.save("Books", fmt.Sprint("b", i), fmt.Sprintf(`{"author":"a%d"}`, i))
			f.save("Authors", fmt.Sprint("a", i), `{"name":"Ann"}`)
		}
		reads.on.Store(true)
		writes.on.Store(true)
		done := make(chan *verify.Report, 1)
		go func() { done <- f.run(verify.Options{Repair: true}) }()
		synctest.Wait()
		if n := reads.waiting.Load(); n != atOnce {
			t.Errorf("%d sources are read at once, want %d", n, atOnce)
		}
		reads.open()
		synctest.Wait()
		if n := writes.waiting.Load(); n != atOnce {
			t.Errorf("%d copies are written at once, want %d", n, atOnce)
		}
		writes.open()
		if r := <-done; r.Copied != books || r.Repaired != books || !r.Clean() {
			t.Errorf("%d objects compared and %d repaired, want %d; left: %+v", r.Copied, r.Repaired, books, r.Differences)
		}
	})
}
