package listener

import (
	"context"
	"math/rand/v2"
	"time"

	"belfry/pkg/backoff"
)

// An event may end the process that handles it: it runs out of memory, or a
// goroutine of the handler panics. Nobody is left to say so; the bus hands the
// event out again after AckWait, and with it whatever else the process held,
// and counts. So an event that was handed out more often than its attempts
// explain is suspect, and is handled while no other is, after a random delay:
// one that is only in bad company is acknowledged sooner or later before the
// guilty one has its turn, and leaves. The guilty one stays, until it has been
// handed out so often that it goes to the dead letters.
const (
	crashes     = 10          // deliveries beyond twice MaxAttempts that make a suspect guilty
	aloneWithin = time.Second // in which suspects have their turns
)

// suspect reports whether an event may have ended a process.
func (r *runner) suspect(d *delivery) bool {
	return r.spec.MaxAttempts > 0 && d.deliveries > r.spec.MaxAttempts
}

// guilty reports whether an event has ended processes beyond doubt. Events that
// were given back unhandled at a stop were handed out more often as well.
func (r *runner) guilty(d *delivery) bool {
	return r.spec.MaxAttempts > 0 && d.deliveries > 2*r.spec.MaxAttempts+crashes
}

// isolate handles a suspect.
func (r *runner) isolate(ctx context.Context, d *delivery) {
	if backoff.Sleep(r.stopping, rand.N(aloneWithin)) != nil {
		r.giveBack(d, 0)
		return
	}
	r.attempt(ctx, d)
}

// enter waits until an event may be handled: suspects are alone in the listener,
// all others side by side.
func (r *runner) enter(d *delivery) {
	if r.suspect(d) {
		r.gate.Lock()
	} else {
		r.gate.RLock()
	}
}

// leave says that an event has been handled.
func (r *runner) leave(d *delivery) {
	if r.suspect(d) {
		r.gate.Unlock()
	} else {
		r.gate.RUnlock()
	}
}
