package sse

import (
	"time"

	"belfry/internal/ratelimit"
)

// Rules are evaluated for each event and viewer, and an object can be made on which a rule
// is slow. So is a filter. So their cost, in the units of package policy, is bounded for each user and each
// network address, whose streams share it: a million units are about 50 ms of a processor.
// A stream that has used it up waits. It loses no event: it continues where it was, or
// resumes from the log.
const (
	userCost    = 1_000_000 // a second, and ratelimit.Window's worth of it at once
	addressCost = 4 * userCost

	// costPause is the minimal wait of such a stream, so that it can then decide about many events.
	costPause = 250 * time.Millisecond
)

// costs are the remaining budgets of each client's rules.
type costs struct {
	users, addresses *ratelimit.Clients
	settleAt         uint64 // cost
}

func newCosts(user, address int) costs {
	return costs{ratelimit.NewClients(user), ratelimit.NewClients(address), uint64(user) / 100}
}

// of returns the allowance of a viewer.
func (c costs) of(v *Viewer, address string, now time.Time) *allowance {
	a := &allowance{owes: true, settleAt: c.settleAt,
		buckets: []*ratelimit.Bucket{c.addresses.Bucket(ratelimit.Key(address), now)}}
	if v.UUID != "" {
		a.buckets = append(a.buckets, c.users.Bucket(v.UUID, now))
	}
	return a
}

// allowance is the budget of the rules that are evaluated for a stream. The streams of a
// client share its buckets, and settle with them now and then: most decisions cost next to
// nothing. nil bounds nothing. It is for one goroutine.
type allowance struct {
	buckets  []*ratelimit.Bucket
	settleAt uint64
	unpaid   uint64
	owes     bool // the buckets may be empty
}

// exhausted is the error of a decision that has to wait.
type exhausted struct{ wait time.Duration }

func (exhausted) Error() string {
	return "the rules for this client have cost too much: it has to wait"
}

// check returns exhausted when nothing is left.
func (a *allowance) check() error {
	if a == nil || !a.owes {
		return nil
	}
	var wait time.Duration
	for now, i := time.Now(), 0; i < len(a.buckets); i++ {
		wait = max(wait, a.buckets[i].Debt(now))
	}
	if a.owes = wait > 0; !a.owes {
		return nil
	}
	return exhausted{max(wait, costPause)}
}

// charge records the cost of a decision, in the units of package policy. It can be more than was left: that is a debt,
// up to the size of a bucket.
func (a *allowance) charge(units uint64) {
	if a == nil {
		return
	}
	if a.unpaid += units; a.unpaid >= a.settleAt {
		a.settle()
	}
}

// settle takes the unpaid cost from the buckets.
func (a *allowance) settle() {
	if a == nil || a.unpaid == 0 {
		return
	}
	for now, i := time.Now(), 0; i < len(a.buckets); i++ {
		a.buckets[i].Charge(now, int(a.unpaid))
	}
	a.unpaid, a.owes = 0, true
}
