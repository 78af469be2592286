package sse

import (
	"time"

	"belfry/pkg/ratelimit"
	"belfry/pkg/store/policy"
)

// Rules are evaluated for each event and viewer, and an object can be made on which a rule
// is slow. So rule cost, in the units of package policy, is bounded for each user and each
// network address, whose streams share it: a million units are about 50 ms of a processor.
// A stream that has used it up waits. It loses no event: it continues where it was, or
// resumes from the log.
const (
	userCost    = 1_000_000 // a second, and ratelimit.Window's worth of it at once
	addressCost = 4 * userCost

	// costPause is how long such a stream waits at least, so that it can then decide
	// about many events.
	costPause = 250 * time.Millisecond
)

// costs are what the rules of each client may still cost.
type costs struct{ users, addresses *ratelimit.Clients }

func newCosts(user, address int) costs {
	return costs{ratelimit.NewClients(user), ratelimit.NewClients(address)}
}

// of returns the allowance of a viewer.
func (c costs) of(v *Viewer, address string, now time.Time) allowance {
	a := allowance{c.addresses.Bucket(ratelimit.Key(address), now)}
	if v.UUID != "" {
		a = append(a, c.users.Bucket(v.UUID, now))
	}
	return a
}

// allowance is what the rules may cost that are evaluated for a stream. An empty one bounds
// nothing.
type allowance []*ratelimit.Bucket

// exhausted is the error of a decision that has to wait.
type exhausted struct{ wait time.Duration }

func (exhausted) Error() string {
	return "the rules for this client have cost too much: it has to wait"
}

// check returns exhausted when nothing is left.
func (a allowance) check(now time.Time) error {
	var wait time.Duration
	for _, bucket := range a {
		wait = max(wait, bucket.Debt(now))
	}
	if wait == 0 {
		return nil
	}
	return exhausted{max(wait, costPause)}
}

// charge takes what the rules have cost. One decision can cost more than was left: that is
// owed, up to what a bucket has at most.
func (a allowance) charge(cost *policy.Budget, now time.Time) {
	for _, bucket := range a {
		bucket.Charge(now, int(cost.Spent()))
	}
}
