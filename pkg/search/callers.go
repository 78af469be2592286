package search

import (
	"context"
	"sync"
	"time"

	"belfry/internal/ratelimit"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// callers bounds how many searches each caller has in progress, so that no one has all slots of the processes that
// search.
type callers struct {
	mu  sync.Mutex
	all map[string]*caller // that have one in progress, or wait for one
}

type caller struct {
	slots chan struct{}
	users int // of this
}

// maxOwn is how many searches of one caller are in progress at once: half of those that a process executes.
var maxOwn = max(1, maxSearches/2)

// callerOf returns the caller of a search: a user, or a network address; "" for belfry itself.
func callerOf(call store.Call) string {
	switch uuid, known := call.User.Text("uuid"); {
	case !call.Client:
		return ""
	case known:
		return "user " + uuid
	default:
		return "address " + ratelimit.Key(call.Ctx.Address)
	}
}

// begin waits for a slot of a caller. Limited if none becomes free soon.
func (c *callers) begin(ctx context.Context, who string) (end func(), err error) {
	if who == "" {
		return func() {}, nil
	}
	c.mu.Lock()
	if c.all == nil {
		c.all = map[string]*caller{}
	}
	own := c.all[who]
	if own == nil {
		own = &caller{slots: make(chan struct{}, maxOwn)}
		c.all[who] = own
	}
	own.users++
	c.mu.Unlock()
	leave := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(c.all, who)
		}
	}
	timer := time.NewTimer(slotTimeout)
	defer timer.Stop()
	select {
	case own.slots <- struct{}{}:
		return func() { <-own.slots; leave() }, nil
	case <-timer.C:
		leave()
		return nil, &errs.Error{Kind: errs.Limited, Message: "q: you have too many searches in progress at once",
			RetryAfter: slotTimeout}
	case <-ctx.Done():
		leave()
		return nil, errs.Wrap(ctx.Err(), errs.Unavailable, "q: the search was not answered")
	}
}
