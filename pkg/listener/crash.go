package listener

import (
	"context"
	"math/rand/v2"
	"time"

	"belfry/pkg/backoff"
)

// A handler can crash the process: it runs out of memory, or a goroutine of its
// own panics. After AckWait the bus redelivers every event that the process had
// in flight, so the delivery count alone does not identify the culprit. Events
// whose delivery count exceeds MaxAttempts are suspected poison messages: they
// are handled one at a time, after a random delay. Innocent ones are acknowledged
// and drop out; the poison message keeps crashing the process until its delivery
// count reaches the limit of poison, and becomes a dead letter.
const (
	crashLimit     = 10          // deliveries beyond twice MaxAttempts that identify a poison message
	isolationDelay = time.Second // at most, before a suspected poison message is handled
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

// isolate handles a suspected poison message.
func (r *runner) isolate(ctx context.Context, d *delivery) {
	if backoff.Sleep(r.stopping, rand.N(isolationDelay)) != nil {
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
