package mapping_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/mapping"
	"belfry/pkg/store/driver"
)

const kib = 1 << 10

// paced are authors with a pace, each with one book, and a log of the requests for them.
type paced struct {
	*fixture
	mu        sync.Mutex
	log       []string
	beforePut func(uuid string)
}

// newPaced makes authors of some sizes, by their uuids, and a pace for so many bytes.
func newPaced(t *testing.T, bytes int, authors map[string]int) *paced {
	t.Helper()
	p := &paced{fixture: newFixture(t, 10), beforePut: func(string) {}}
	for uuid, size := range authors {
		p.save("Authors", uuid, `{"text":"`+strings.Repeat("x", size)+`"}`)
		p.save("Books", "of-"+uuid, `{"author":"`+uuid+`"}`)
	}
	p.backend.BeforeGet = func(_ context.Context, store, uuid string) error {
		p.note(store, "get "+uuid)
		return nil
	}
	p.backend.BeforePut = func(_ context.Context, store string, w driver.Write) error {
		p.note(store, "put "+w.UUID)
		p.beforePut(w.UUID)
		return nil
	}
	p.reconciler = mapping.NewReconciler(p.set, mapping.Options{Pace: mapping.NewPace(bytes)})
	return p
}

func (p *paced) note(store, request string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if store == "Authors" {
		p.log = append(p.log, request)
	}
}

// requests returns those for authors since the last call.
func (p *paced) requests() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() { p.log = nil }()
	return strings.Join(p.log, ", ")
}

// begin runs a round on an author until it ends or waits.
func (p *paced) begin(ctx context.Context, author string) (result func() error) {
	done := make(chan error, 1)
	go func() { done <- p.reconciler.Reconcile(ctx, p.mapping, author, []string{"of-" + author}) }()
	synctest.Wait()
	return func() error { return <-done }
}

func TestRoundsOnLargeTargetsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaced(t, 150*kib, map[string]int{"a": 100 * kib, "b": 100 * kib, "small": 10})
		writing := make(chan struct{})
		p.beforePut = func(uuid string) {
			if uuid == "a" {
				<-writing
			}
		}
		a, b, small := p.begin(t.Context(), "a"), p.begin(t.Context(), "b"), p.begin(t.Context(), "small")
		// How large a target is is known once it is read. One that waits is not kept in memory.
		if got, want := p.requests(), "get a, get a, put a, get b, get small, put small"; got != want {
			t.Errorf("while one is written: %s, want %s", got, want)
		}
		close(writing)
		for _, result := range []func() error{a, b, small} {
			p.must(result())
		}
		if got, want := p.requests(), "get b, put b"; got != want {
			t.Errorf("after that: %s, want %s", got, want)
		}
	})
}

func TestATargetThatIsKnownToBeLargeIsReadInItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaced(t, 150*kib, map[string]int{"a": 100 * kib, "b": 100 * kib})
		p.must(p.begin(t.Context(), "b")())
		p.update("Books", "of-b", `{"title":"1"}`)
		p.requests()
		writing := make(chan struct{})
		p.beforePut = func(uuid string) {
			if uuid == "a" {
				<-writing
			}
		}
		time.Sleep(time.Hour)
		a, b := p.begin(t.Context(), "a"), p.begin(t.Context(), "b")
		if got, want := p.requests(), "get a, get a, put a"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		close(writing)
		p.must(errors.Join(a(), b()))
		if got, want := p.requests(), "get b, put b"; got != want {
			t.Errorf("after that: %s, want %s", got, want)
		}
	})
}

// After a round the others pause as long as it took, over all targets.
func TestLargeTargetsPauseAsLongAsWritingTook(t *testing.T) {
	for took, pause := range map[time.Duration]time.Duration{
		time.Millisecond: 0, 30 * time.Millisecond: 30 * time.Millisecond, time.Second: 50 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPaced(t, 150*kib, map[string]int{"a": 100 * kib, "b": 100 * kib})
			began := time.Now()
			var second time.Duration
			p.beforePut = func(uuid string) {
				if uuid == "b" {
					second = time.Since(began)
					return
				}
				time.Sleep(took)
			}
			a, b := p.begin(t.Context(), "a"), p.begin(t.Context(), "b")
			p.must(errors.Join(a(), b()))
			if want := took + pause; second != want {
				t.Errorf("the second target is written after %s, want %s after the first took %s", second, want, took)
			}
		})
	}
}

// What is larger than the pace has it for itself, and what comes later does not overtake it.
func TestATargetLargerThanThePaceIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaced(t, 100*kib, map[string]int{"a": 70 * kib, "b": 200 * kib, "c": 70 * kib})
		writing := make(chan struct{})
		p.beforePut = func(string) { <-writing }
		var all []func() error
		for _, author := range []string{"a", "b", "c"} {
			all = append(all, p.begin(t.Context(), author))
		}
		p.requests()
		for range all {
			writing <- struct{}{}
		}
		for _, result := range all {
			p.must(result())
		}
		if got, want := p.requests(), "get b, put b, get c, put c"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// Whoever gives up while it waits takes no capacity with it.
func TestAWaitForATurnIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaced(t, 150*kib, map[string]int{"a": 100 * kib, "b": 100 * kib, "c": 100 * kib})
		writing := make(chan struct{})
		p.beforePut = func(string) { <-writing }
		ctx, cancel := context.WithCancel(t.Context())
		a, b := p.begin(t.Context(), "a"), p.begin(ctx, "b")
		cancel()
		if err := b(); errs.KindOf(err) != errs.Canceled {
			t.Errorf("error %v, want %q", err, errs.Canceled)
		}
		p.requests()
		c := p.begin(t.Context(), "c")
		close(writing)
		p.must(errors.Join(a(), c()))
		if got := p.requests(); !slices.Contains(strings.Split(got, ", "), "put c") {
			t.Errorf("%s, want that c is written", got)
		}
	})
}

// Where a small target takes long to write, that is for another reason than its size.
func TestASmallTargetHasNoPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaced(t, 150*kib, map[string]int{"large": 100 * kib, "small": 10})
		p.beforePut = func(string) { time.Sleep(20 * time.Millisecond) }
		for author, want := range map[string]time.Duration{"large": 20 * time.Millisecond, "small": 0} {
			turn, err := p.reconciler.Begin(t.Context(), p.mapping, author)
			p.must(err)
			p.must(turn.Reconcile(t.Context(), []string{"of-" + author}, false, nil))
			if pause := turn.End(); pause != want {
				t.Errorf("after a write of a %s target there is a pause of %s, want %s", author, pause, want)
			}
		}
	})
}
