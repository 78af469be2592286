package listener

import (
	"context"
	"time"

	"belfry/internal/backoff"
)

// A handler can crash the process: it runs out of memory, or one of its goroutines
// panics. After AckWait the bus redelivers every event that the process had in flight, so
// the delivery count alone does not identify the culprit.
//
// Events whose delivery count exceeds MaxAttempts are suspected poison messages: they are
// handled one at a time, after a delay. Innocent ones are acknowledged and drop out. The
// poison message keeps crashing the process until its delivery count reaches the limit of
// poison, and becomes a dead letter.
//
// The delays decide which innocent ones are handled before the process crashes again.
// With random delays, one of several hundred would be too late each time, and become a
// dead letter too. So an event that is late in one attempt is early in the next. Of two
// consecutive attempts, an event precedes any other in exactly one, independently of
// delivery counts.
const (
	crashLimit     = 10                 // deliveries beyond twice MaxAttempts that identify a poison message
	isolationDelay = time.Second        // at most, before a suspected poison message is handled
	golden         = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio: its multiples are far from each other
)

// suspected reports whether an event may have crashed a process.
func (r *runner) suspected(d *delivery) bool {
	return r.spec.MaxAttempts > 0 && d.deliveries > r.spec.MaxAttempts
}

// poison reports whether an event has crashed processes. Its limit allows for
// deliveries that were returned unhandled at a shutdown.
func (r *runner) poison(d *delivery) bool {
	return r.spec.MaxAttempts > 0 && d.deliveries > 2*r.spec.MaxAttempts+crashLimit
}

// isolation is the delay before a suspected poison message is handled.
func isolation(sequence uint64, deliveries int) time.Duration {
	const bits = 30
	delay := time.Duration(sequence*golden>>(64-bits)) * isolationDelay >> bits //nolint:gosec // bits are few
	if deliveries%2 == 0 {
		return isolationDelay - delay
	}
	return delay
}

// isolate handles a suspected poison message.
func (r *runner) isolate(ctx context.Context, d *delivery) {
	if backoff.Sleep(r.stopping, isolation(d.Sequence, d.deliveries)) != nil {
		r.nak(d, 0)
		return
	}
	r.attempt(ctx, d)
}

// lock waits until an event may be handled: a suspected poison message alone in the listener, any
// other together with others.
func (r *runner) lock(d *delivery) {
	if r.suspected(d) {
		r.isolation.Lock()
	} else {
		r.isolation.RLock()
	}
}

func (r *runner) unlock(d *delivery) {
	if r.suspected(d) {
		r.isolation.Unlock()
	} else {
		r.isolation.RUnlock()
	}
}
