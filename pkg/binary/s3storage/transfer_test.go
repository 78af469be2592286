package s3storage_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/binary/driver"
	"belfry/pkg/binary/s3storage"
	"belfry/pkg/errs"
	"belfry/test/backing"
	"belfry/test/kit"
)

// budget is a driver.Budget that fails the test unless all is released.
type budget struct {
	parts int64
	used  atomic.Int64
	most  atomic.Int64
}

func newBudget(t *testing.T, parts int64) *budget {
	b := &budget{parts: parts}
	t.Cleanup(func() {
		if left := b.used.Load(); left != 0 {
			t.Errorf("%d bytes are still reserved", left)
		}
	})
	return b
}

func (b *budget) TryReserve(bytes int64) bool {
	if used := b.used.Add(bytes); used <= b.parts*s3storage.PartSize {
		b.most.Store(max(b.most.Load(), used))
		return true
	}
	b.used.Add(-bytes)
	return false
}

func (b *budget) Release(bytes int64) { b.used.Add(-bytes) }

// within returns a stage with a budget. It is discarded at the end of the test.
func within(ctx context.Context, t *testing.T, s *s3storage.Storage, b *budget) driver.Staged {
	t.Helper()
	staged, err := s.StageWithin(ctx, b)
	must(t, err)
	t.Cleanup(staged.Discard)
	return staged
}

// gate holds requests until so many are in flight, and a while longer, for as long as
// one more may take.
type gate struct {
	want int

	mu        sync.Mutex
	now, most int
	reached   chan struct{}
}

func (g *gate) pass(serve func()) {
	g.mu.Lock()
	g.now++
	if g.now == g.want && g.most < g.want {
		close(g.reached)
	}
	g.most = max(g.most, g.now)
	g.mu.Unlock()
	select {
	case <-g.reached:
	case <-time.After(kit.Limit):
	}
	<-time.After(100 * time.Millisecond)
	serve()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now--
}

// As many parts are in flight as there is memory for, at least one, and at most four.
func TestPartsInFlightAreBounded(t *testing.T) {
	t.Parallel()
	server := backing.S3(t)
	c := random("a", 6*s3storage.PartSize+100)
	for parts, want := range map[int64]int{0: 1, 1: 2, 2: 3, 100: s3storage.PartsAtOnce} {
		t.Run(fmt.Sprintf("memory for %d more", parts), func(t *testing.T) {
			p := front(t, server, true)
			s := open(t, p.options(server))
			g := &gate{want: want, reached: make(chan struct{})}
			p.set(func(w http.ResponseWriter, r *http.Request) {
				if operation(r) != "UploadPart" {
					p.pass.ServeHTTP(w, r)
					return
				}
				g.pass(func() { p.pass.ServeHTTP(w, r) })
			})
			b := newBudget(t, parts)
			staged := within(t.Context(), t, s, b)
			_, err := staged.Write(c)
			must(t, err)
			must(t, staged.Commit(t.Context(), hashOf(c)))
			if g.most != want {
				t.Errorf("%d parts were in flight at once, want %d", g.most, want)
			}
			if most := b.most.Load(); most > s3storage.PartsAtOnce*s3storage.PartSize {
				t.Errorf("%d bytes were reserved at once", most)
			}
			if left := b.used.Load(); left != 0 {
				t.Errorf("%d bytes are reserved after the last part", left)
			}
			holds(t, s, c)
		})
	}
}

// stuck makes parts stay in flight until their request is canceled. The refused one gets
// its error when the others are in flight.
func stuck(t *testing.T, p *proxy, refused string) (canceled *atomic.Int64) {
	canceled = &atomic.Int64{}
	var held atomic.Int64
	others := make(chan struct{})
	p.set(func(w http.ResponseWriter, r *http.Request) {
		number := r.URL.Query().Get("partNumber")
		switch {
		case operation(r) != "UploadPart":
			p.pass.ServeHTTP(w, r)
		case number == refused:
			<-others
			refuse(w, r, http.StatusForbidden, "AccessDenied")
		default:
			_, _ = io.Copy(io.Discard, r.Body)
			if held.Add(1) == s3storage.PartsAtOnce-1 {
				close(others)
			}
			inFlight, end := kit.Patience(r.Context(), time.Minute)
			defer end()
			if <-inFlight.Done(); r.Context().Err() == nil {
				t.Error("a part stays in flight")
				refuse(w, r, http.StatusForbidden, "AccessDenied")
			}
			canceled.Add(1)
		}
	})
	return canceled
}

// The error of a part ends the others. They are sent again, and the content is whole.
func TestErrorOfAPartEndsTheOthers(t *testing.T) {
	t.Parallel()
	server := backing.S3(t)
	p := front(t, server, true)
	s := open(t, fastRetry(p.options(server)))
	c := random("a", 5*s3storage.PartSize+100)
	canceled := stuck(t, p, "2")
	staged := within(t.Context(), t, s, newBudget(t, 100))
	n, err := staged.Write(c)
	wantKind(t, err, errs.Internal)
	kit.WaitFor(t, "the other parts are canceled",
		func() bool { return canceled.Load() == s3storage.PartsAtOnce-1 })

	p.set(nil)
	_, err = staged.Write(c[n:])
	must(t, err)
	must(t, staged.Commit(t.Context(), hashOf(c)))
	holds(t, s, c)
	staged = within(t.Context(), t, s, newBudget(t, 100))
	stuck(t, p, "2")
	_, err = staged.Write(c)
	wantKind(t, err, errs.Internal)
	staged.Discard()
	p.set(nil)
	holds(t, s, c)
}

// A client that disconnects, or a process that ends, leaves no part in flight and no memory.
func TestCancellationEndsAllParts(t *testing.T) {
	t.Parallel()
	server := backing.S3(t)
	c := random("a", 5*s3storage.PartSize+100)
	for name, test := range map[string]struct {
		size   int // of what is written
		commit bool
	}{
		"while it waits to send another": {len(c), false},
		"while it commits":               {4*s3storage.PartSize + 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := front(t, server, true)
			s := open(t, fastRetry(p.options(server)))
			canceled := stuck(t, p, "")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			writing := ctx
			if test.commit {
				writing = t.Context()
			}
			b := newBudget(t, 100)
			staged, err := s.StageWithin(writing, b)
			must(t, err)
			failed := make(chan error, 1)
			go func() {
				_, err := staged.Write(c[:test.size])
				if test.commit && err == nil {
					err = staged.Commit(ctx, hashOf(c[:test.size]))
				}
				failed <- err
			}()
			kit.WaitFor(t, "the parts are in flight",
				func() bool { return p.requests("UploadPart") == s3storage.PartsAtOnce })
			cancel()
			wantKind(t, <-failed, errs.Canceled)
			kit.WaitFor(t, "the parts are canceled", func() bool { return canceled.Load() == s3storage.PartsAtOnce })
			staged.Discard()
			if left := b.used.Load(); left != 0 {
				t.Errorf("%d bytes are reserved after Discard", left)
			}
			p.set(nil)
			lacks(t, s, hashOf(c))
			tidies(t, open(t, options(server)), 0)
		})
	}
}

// S3 is overloaded for a moment: one part is sent again, and no other.
func TestOnePartIsRetried(t *testing.T) {
	t.Parallel()
	server := backing.S3(t)
	p := front(t, server, true)
	s := open(t, fastRetry(p.options(server)))
	var failed atomic.Bool
	var third atomic.Int64
	p.set(func(w http.ResponseWriter, r *http.Request) {
		if operation(r) == "UploadPart" && r.URL.Query().Get("partNumber") == "3" {
			third.Add(1)
			if failed.CompareAndSwap(false, true) {
				refuse(w, r, http.StatusServiceUnavailable, "SlowDown")
				return
			}
		}
		p.pass.ServeHTTP(w, r)
	})
	c := random("a", 5*s3storage.PartSize)
	staged := within(t.Context(), t, s, newBudget(t, 100))
	_, err := staged.Write(c)
	must(t, err)
	must(t, staged.Commit(t.Context(), hashOf(c)))
	if n := p.requests("UploadPart"); n != 6 || third.Load() != 2 {
		t.Errorf("%d requests for 5 parts, %d for the third, want 6 and 2", n, third.Load())
	}
	holds(t, s, c)
}
