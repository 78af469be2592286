package listener

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"belfry/internal/backoff"
)

// The bus decides by its wall clock when an event is redelivered: AckWait, or the
// delay of a retry, after the time that it has noted for the event. When its clock
// is set back by an hour, the events noted before wait for another hour. Those
// that a worker holds get a new time with each heartbeat; those of a worker that
// crashed, and those that wait for a retry, do not.
//
// So a listener compares the bus's clock with the time that has passed here. When
// the bus's clock is behind, it sends a heartbeat for every event that is not
// acknowledged, whoever holds it: the bus then notes the present time, and
// redelivers after AckWait what nobody holds.
//
// Nobody sees a step while neither the bus nor the listener runs, nor one forward and
// back between two looks at the clock; and a heartbeat to a server that no longer leads is
// lost. So a listener also sends heartbeats when events stay unacknowledged for longer
// than a redelivery takes, and ever more rarely while the same ones stay, since a handler
// may be slow. It does not ask for the times in the log: whoever may, may ask for all
// subjects as well.

const (
	clockTolerance = time.Second // by which a clock may be behind without a consequence
	clockChecks    = 4           // within AckWait
	clockCheckMin  = time.Second
	clockCheckMax  = 10 * time.Second
	renewalGap     = 2    // AckWaits between two renewals, and before the first without a step: within them, what nobody holds is redelivered
	renewalGapMax  = 1024 // AckWaits between two renewals without a step: more than there are processes, since each renews
	renewedAtOnce  = 1000 // heartbeats between two flushes
	renewedAtMost  = 1_000_000
)

// busClock is what is known of the bus's clock.
type busClock struct {
	mu    sync.Mutex
	shown time.Time // the latest time that the clock is known to have shown ...
	at    time.Time // ... before this local time, whose monotonic reading counts
}

// saw records that before a local time the bus's clock had shown a time.
func (c *busClock) saw(shown, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shown.IsZero() || shown.After(c.atLeast(at)) {
		c.shown, c.at = shown, at
	}
}

// atLeast is what the clock shows at a local time if nobody has set it back.
func (c *busClock) atLeast(at time.Time) time.Time { return c.shown.Add(at.Sub(c.at)) }

// check records what the bus's clock showed between two local times, and returns by
// how much it had been set back.
func (c *busClock) check(shown, from, to time.Time) (back time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.shown.IsZero() {
		back = max(0, c.atLeast(from).Sub(shown))
	}
	c.shown, c.at = shown, to
	return back
}

// followClock renews the events in flight when the bus's clock is set back, until
// ctx ends.
func (r *runner) followClock(ctx context.Context) {
	interval := min(max(r.spec.AckWait/clockChecks, clockCheckMin), clockCheckMax)
	var renewed time.Time
	var due bool
	var left leftover
	for {
		back, unacked, err := r.checkClock(ctx)
		if err == nil && back > clockTolerance {
			due = true
			r.log.Log(ctx, logLevel(renewed.IsZero()), "the bus's clock was set back; events that no worker holds are redelivered when they have waited again",
				"by", back.Round(time.Millisecond), "unacknowledged", unacked.count, "wait", r.spec.AckWait)
		}
		if err == nil && left.remains(time.Now(), unacked, r.spec.AckWait) {
			due = true
			r.log.InfoContext(ctx, "events stay unacknowledged; those that no worker holds are redelivered when they have waited again",
				"unacknowledged", unacked.count, "wait", r.spec.AckWait)
		}
		if err == nil && due && (renewed.IsZero() || time.Since(renewed) > renewalGap*r.spec.AckWait) && r.renew(ctx, unacked) == nil {
			due, renewed = false, time.Now()
		}
		if backoff.Sleep(ctx, interval) != nil {
			return
		}
	}
}

// logLevel is that of a message which repeats while clocks of several servers differ.
func logLevel(first bool) slog.Level {
	if first {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// span is where in the log a consumer's unacknowledged events are.
type span struct {
	after, last uint64
	count       int
}

// checkClock compares the bus's clock with the time that has passed.
func (r *runner) checkClock(ctx context.Context) (back time.Duration, unacked span, err error) {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	from := time.Now()
	c, err := r.bus.JetStream().Consumer(ctx, r.stream, r.consumer)
	if err != nil {
		return 0, span{}, err
	}
	info := c.CachedInfo()
	if !info.TimeStamp.IsZero() {
		back = r.clock.check(info.TimeStamp, from, time.Now())
	}
	return back, span{info.AckFloor.Stream, info.Delivered.Stream, info.NumAckPending}, nil
}

// leftover are the events up to a sequence that were not acknowledged at a time.
type leftover struct {
	since time.Time
	last  uint64
	gap   time.Duration // after which they are looked at again; it doubles while some of them stay
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
		if err := conn.Publish(fmt.Sprintf("$JS.ACK.%s.%s.1.%d.1.0.0", r.stream, r.consumer, seq), []byte("+WPI")); err != nil {
			return err
		}
		if seq%renewedAtOnce == 0 {
			if err := conn.FlushWithContext(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}
