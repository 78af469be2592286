package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"belfry/pkg/store"
)

// The world of the model: a record with a lease and the log of fenced writes, a clock, and holders that crash, stall
// and go on. Each step is one conditional write of the record, or a tick. All interleavings up to a depth are explored
// with the real Lease.

const (
	leaseLasts = 3 // ticks
	holders    = 2
	leaseDepth = 12
	skew       = 1 // tick by which the clock of the second holder is ahead
)

// leased are the fields of a lease.
type leased struct {
	holder string
	at     time.Time // when it was renewed, or ends
}

// lease is the lease in one of the two forms that records have.
func (l *leased) lease(until bool, lasts time.Duration) store.Lease {
	if until {
		return store.Lease{Holder: &l.holder, Until: &l.at, Lasts: lasts}
	}
	return store.Lease{Holder: &l.holder, Renewed: &l.at, Lasts: lasts}
}

type leaseWorld struct {
	until   bool
	lease   leased
	clock   int
	working [holders]bool // by what each holder knows
	last    [holders]int  // when each has renewed last, by its own clock
	down    [holders]bool
	trace   string
}

func (w *leaseWorld) of() store.Lease { return w.lease.lease(w.until, leaseLasts*time.Second) }

func at(tick int) time.Time { return time.Date(2030, 1, 1, 0, 0, tick, 0, time.UTC) }

func (w *leaseWorld) now(h int) time.Time { return at(w.clock + h*skew) }

func holder(h int) string { return fmt.Sprint("holder ", h) }

// steps are what can happen next.
func (w leaseWorld) steps(t *testing.T) (next []leaseWorld) {
	t.Helper()
	add := func(step string, change func(*leaseWorld)) {
		n := w
		n.trace += " " + step
		change(&n)
		next = append(next, n)
	}
	add("tick", func(n *leaseWorld) { n.clock++ })
	for h := range holders {
		if w.down[h] {
			add(fmt.Sprint("start", h), func(n *leaseWorld) { n.down[h] = false })
			continue
		}
		add(fmt.Sprint("crash", h), func(n *leaseWorld) { n.down[h], n.working[h] = true, false })
		if !w.working[h] {
			add(fmt.Sprint("claim", h), func(n *leaseWorld) {
				before := n.lease
				if !n.of().Claim(holder(h), n.now(h)) {
					return
				}
				n.working[h], n.last[h] = true, n.clock
				if other := 1 - h; before.holder == holder(other) && n.working[other] &&
					n.clock-n.last[other] < leaseLasts-skew {
					t.Errorf("a lease is claimed that its holder has renewed in time:%s", n.trace)
				}
			})
			continue
		}
		// A fenced write, which renews. A holder that learns that it has lost the lease stops.
		add(fmt.Sprint("write", h), func(n *leaseWorld) {
			if !n.of().Renew(holder(h), n.now(h)) {
				n.working[h] = false
				return
			}
			n.last[h] = n.clock
			if n.lease.holder != holder(h) {
				t.Errorf("a holder writes without the lease:%s", n.trace)
			}
		})
		add(fmt.Sprint("release", h), func(n *leaseWorld) {
			if had := n.lease.holder == holder(h); n.of().Release(holder(h)) != had {
				t.Errorf("a lease is released that another holder has:%s", n.trace)
			}
			n.working[h] = false
		})
	}
	return next
}

func TestALeaseInEveryInterleaving(t *testing.T) {
	for _, until := range []bool{false, true} {
		exploreLeases(t, leaseWorld{until: until})
	}
}

func exploreLeases(t *testing.T, first leaseWorld) {
	t.Helper()
	type key struct {
		lease   leased
		clock   int
		working [holders]bool
		last    [holders]int
		down    [holders]bool
	}
	seen, worlds := map[key]bool{}, []leaseWorld{first}
	for depth := range leaseDepth {
		var next []leaseWorld
		for _, w := range worlds {
			for _, n := range w.steps(t) {
				k := key{n.lease, n.clock, n.working, n.last, n.down}
				if seen[k] {
					continue
				}
				seen[k] = true
				next = append(next, n)
				// Whoever waits for as long as a lease lasts has it.
				waited := n
				if !waited.of().Claim("another", at(n.clock+leaseLasts+skew)) {
					t.Errorf("nobody can claim the lease of a holder that renews it no more:%s", n.trace)
				}
			}
		}
		if worlds = next; len(worlds) == 0 {
			t.Fatalf("nothing happens after %d steps", depth)
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d worlds", len(seen))
}

func TestALeaseOfAClockThatWasSetBackEnds(t *testing.T) {
	for _, until := range []bool{false, true} {
		l := leased{}
		l.lease(until, time.Minute).Claim("a", at(1000))
		for now, held := range map[int]bool{1000 - 61: false, 1000 - 59: true, 1059: true, 1061: false} {
			if got := l.lease(until, time.Minute).Held(at(now)); got != held {
				t.Errorf("held at %d: %v", now, got)
			}
		}
	}
}

func TestWhoHasALease(t *testing.T) {
	var holder string
	var beats uint64
	var renewed time.Time
	ended := false
	l := store.Lease{Holder: &holder, Renewed: &renewed, Lasts: time.Minute, Ended: func() bool { return ended }}
	renewed = at(0)
	if l.Left(at(1)) != 0 || l.Renew("a", at(1)) || l.Release("a") {
		t.Error("a lease is held by nobody")
	}
	if !l.Claim("a", at(1)) || l.Left(at(21)) != 40*time.Second {
		t.Errorf("%s left", l.Left(at(21)))
	}
	if l.Claim("b", at(60)) || !l.Claim("a", at(60)) || l.Left(at(61)) != 59*time.Second {
		t.Error("it is not the holder alone who claims a lease again")
	}
	if ended = true; l.Held(at(61)) || !l.Claim("b", at(61)) {
		t.Error("the lease of a holder that has ended is held")
	}
	if l.Renew("a", at(62)) || l.Release("a") || holder != "b" {
		t.Error("a holder renews or releases the lease of another one")
	}
	if !l.Release("b") || holder != "" || !renewed.IsZero() {
		t.Error("a lease is not released")
	}
	l = store.Lease{Holder: &holder, Beat: &beats, Lasts: time.Minute}
	for n := range uint64(3) {
		if !l.Claim("a", time.Time{}) || !l.Renew("a", time.Time{}) || beats != 2*(n+1) || l.Claim("b", time.Time{}) {
			t.Errorf("%d beats", beats)
		}
	}
	if !l.Release("a") || beats != 0 {
		t.Error("a lease is not released")
	}
}

func TestALeaseIsKeptUntilItIsLost(t *testing.T) {
	calls := make(chan error)
	kept, stop := store.KeepLease(t.Context(), time.Microsecond, func(ctx context.Context) error {
		select {
		case err := <-calls:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	calls <- nil
	calls <- errors.New("the database can't be reached")
	if kept.Err() != nil {
		t.Fatal("an error that passes ends what is done")
	}
	calls <- fmt.Errorf("renewing: %w", store.ErrLeaseLost)
	<-kept.Done()
	if !errors.Is(context.Cause(kept), store.ErrLeaseLost) {
		t.Errorf("the cause is %v", context.Cause(kept))
	}
	calls <- nil // it is called on: it may also say that the process runs
	stop()

	begun := make(chan struct{}, 1)
	kept, stop = store.KeepLease(t.Context(), time.Microsecond, func(ctx context.Context) error {
		select {
		case begun <- struct{}{}:
		default:
		}
		<-ctx.Done()
		return ctx.Err()
	})
	<-begun
	if stop(); kept.Err() == nil {
		t.Error("the context goes on after the end")
	}
}
