package listener

import (
	"context"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
)

// BusClock is what a listener knows of the bus's clock.
type BusClock struct{ c busClock }

// Saw records that the bus's clock had shown a time before a local one.
func (c *BusClock) Saw(shown, at time.Time) { c.c.saw(shown, at) }

// Check returns by how much the clock was set back when it showed a time between two local ones.
func (c *BusClock) Check(shown, from, to time.Time) time.Duration { return c.c.check(shown, from, to) }

// Leftover is leftover.
type Leftover struct{ l leftover }

// Remains is leftover.remains.
func (l *Leftover) Remains(now time.Time, count int, after, last uint64, ackWait time.Duration) bool {
	return l.l.remains(now, span{after, last, count}, ackWait)
}

// Renewals is renewals.
type Renewals struct{ n renewals }

// Due is renewals.due.
func (n *Renewals) Due(now time.Time, back time.Duration, count int, after, last uint64,
	ackWait time.Duration) (due, stay bool) {
	return n.n.due(now, back, span{after, last, count}, ackWait)
}

// Failed is renewals.failed.
func (n *Renewals) Failed() { n.n.failed() }

// RequestShare is requestShare.
const RequestShare = requestShare

// RenewedAtOnce is renewedAtOnce.
const RenewedAtOnce = renewedAtOnce

// Renew does what a listener does when the bus's clock was set back.
func Renew(ctx context.Context, b Bus, spec Spec) error {
	spec = spec.withDefaults()
	r := newRunner(b, slog.New(slog.DiscardHandler), spec, spec.Name, spec.Filters)
	_, unacked, err := r.checkClock(ctx)
	if err != nil {
		return err
	}
	return r.renew(ctx, unacked)
}

// Isolation is isolation.
func Isolation(sequence uint64, deliveries int) time.Duration { return isolation(sequence, deliveries) }

// ConsumerSettings and KeptSettings are all settings of consumers.
var (
	ConsumerSettings = consumerSettings
	KeptSettings     = keptSettings
)

// LimitPending is limitPending.
func LimitPending(sub *nats.Subscription, limit int) error { return limitPending(sub, limit) }

// Requested is how many requests a listener makes that handles so many events at once, of which this many end one after
// the other.
func Requested(ctx context.Context, handled, ended int) (requests int) {
	w := newPrefetchWindow(handled, handled, 0)
	w.acquire(ctx)
	for range ended {
		w.release(1)
		if n, enough := w.free(); enough {
			w.used.Add(int64(n))
			requests++
		}
	}
	return requests
}
