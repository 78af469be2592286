package listener

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// A renewal sends a heartbeat for every unacknowledged event, in any process. An event that no
// worker holds is redelivered AckWait later, unless another heartbeat precedes. So renewals
// must be rare enough for redelivery, even if several processes run the listener and each
// renews.
//
// The first detected step causes a renewal at once. The gaps between renewals double while
//
//   - steps recur: the servers' clocks differ, or events of a clock that was ahead are
//     delivered one by one
//   - the same events stay: a handler is slow
//   - renewals fail
//
// With any number of processes there is then a time of AckWait without a heartbeat.

const (
	// AckWaits between two renewals, and before the first without a step: within them, events that no worker holds are
	// redelivered
	renewalGap = 2
	// AckWaits between two renewals that have the same cause: more than there are processes, since each renews
	renewalGapMax = 1024
	renewedAtOnce = 1000 // heartbeats between two flushes
	renewedAtMost = 1_000_000
	renewalFlush  = 10 * time.Second // for the bus to take so many
)

// renewals are those of a consumer by this process. They outlast a connection.
type renewals struct {
	last    time.Time     // when one was begun
	gap     time.Duration // after it, before another one for a step
	stepped bool          // a step was seen since, or it failed
	stay    bool          // events stay
	left    leftover
}

// due reports after a check of the clock whether a renewal begins now, and whether it is for events that stay.
func (n *renewals) due(now time.Time, back time.Duration, unacked span, ackWait time.Duration) (due, stay bool) {
	n.stepped = n.stepped || back > clockTolerance
	n.stay = n.left.remains(now, unacked, ackWait) || n.stay
	if unacked.count == 0 {
		n.stepped, n.stay = false, false // later events are noted with the present time
		return false, false
	}
	if !n.last.IsZero() {
		since := now.Sub(n.last)
		if since < renewalGap*ackWait || !n.stay && since < n.gap {
			return false, false
		}
		if since >= 2*n.gap {
			n.gap = 0 // this one has another cause
		}
	}
	if !n.stepped && !n.stay {
		return false, false
	}
	if n.stepped {
		n.gap = min(max(2*n.gap, renewalGap*ackWait), renewalGapMax*ackWait)
	}
	stay = n.stay
	n.last, n.stepped, n.stay = now, false, false
	return true, stay
}

// failed schedules the renewal again.
func (n *renewals) failed() { n.stepped = true }

// leftover are the events up to a sequence that were not acknowledged at a time.
type leftover struct {
	since time.Time
	last  uint64
	gap   time.Duration // after which they are checked again; it doubles while some of them stay
}

// remains reports that some of them still are not acknowledged after the time in which they would have been
// redelivered.
func (l *leftover) remains(now time.Time, unacked span, ackWait time.Duration) bool {
	if l.since.IsZero() || unacked.count == 0 || unacked.after >= l.last {
		*l = leftover{since: now, last: unacked.last, gap: renewalGap * ackWait}
		return false
	}
	if now.Sub(l.since) < l.gap {
		return false
	}
	l.since, l.gap = now, min(2*l.gap, renewalGapMax*ackWait)
	return true
}

// renew sends a heartbeat for each event that may be unacknowledged. The bus
// ignores those for others.
func (r *runner) renew(ctx context.Context, unacked span) error {
	if unacked.count == 0 {
		return nil
	}
	conn := r.bus.JetStream().Conn()
	last := min(unacked.last, unacked.after+renewedAtMost)
	for seq := unacked.after + 1; seq <= last; seq++ {
		if err := conn.Publish(fmt.Sprintf("$JS.ACK.%s.%s.1.%d.1.0.0", r.stream, r.consumer, seq),
			[]byte("+WPI")); err != nil {
			return err
		}
		if seq%renewedAtOnce == 0 {
			if err := flush(ctx, conn); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush waits until the bus has received the heartbeats.
func flush(ctx context.Context, conn *nats.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, renewalFlush) // without a deadline the client refuses to flush
	defer cancel()
	return conn.FlushWithContext(ctx)
}
