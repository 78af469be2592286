package store

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"belfry/pkg/errs"
)

// Claims are complete once every object has those of its values, and every process makes claims. Until then they are
// pending: a write makes its claim, and is refused if the owner of the claim has the value. But an object that nobody
// has read yet may have it, too. The collection reads all objects, and so names every value that two of them have.

// collection is whether the claims of a store are complete. It belongs to their records, so that the stores of one
// configuration after another share it as long as they share the records.
type collection struct {
	complete atomic.Bool
	begun    time.Time // when this process opened the claims

	noWait chan struct{} // closed when writes no longer wait for the claims to be complete
	once   sync.Once
}

func newCollection() *collection { return &collection{begun: time.Now(), noWait: make(chan struct{})} }

// collectWait is CollectWait by default: a small store is collected sooner, and clients mostly wait longer for a reply.
const collectWait = time.Second

// Trust says whether the claims are complete, so that a value without a claim is nobody's.
func (c *Claims) Trust(complete bool) {
	c.records.collection.complete.Store(complete)
	if complete {
		c.Proceed()
	}
}

// Trusted reports whether the claims are complete.
func (c *Claims) Trusted() bool { return c.records.collection.complete.Load() }

// Proceed has writes no longer wait for the claims to be complete, which will take longer.
func (c *Claims) Proceed() {
	c.records.collection.once.Do(func() { close(c.records.collection.noWait) })
}

// Refuses reports whether writes that give an object a value are refused until the claims are complete.
func (c *Claims) Refuses() bool { return c.refuses }

// awaitComplete returns once a write may give objects values. All writes together wait for at most collectWait after
// the store has begun to make claims, so that a small store has no time in which its claims are pending.
func (c *Claims) awaitComplete(ctx context.Context) error {
	if c.Trusted() {
		return nil
	}
	if err := c.records.collection.wait(ctx, c.collectWait); err != nil {
		return err
	}
	if c.refuses && !c.Trusted() {
		return errs.New(errs.Unavailable, "the unique values of %s are being collected from its objects: try again",
			c.name)
	}
	return nil
}

// wait waits until the time is over, and for no more than half of what the caller has left.
func (x *collection) wait(ctx context.Context, most time.Duration) error {
	left := time.Until(x.begun.Add(most))
	if deadline, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(deadline)/2)
	}
	if left <= 0 {
		return nil
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-x.noWait:
		return nil
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
