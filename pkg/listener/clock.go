package listener

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"belfry/internal/backoff"
)

// The bus decides by its wall clock when an event is redelivered: AckWait, or the delay of a retry, after the
// time that it recorded for the event. If its clock is set back by an hour, earlier events wait for another
// hour. Events that a worker holds get a new time with each heartbeat; those of a crashed worker, and those
// that wait for a retry, do not.
//
// So a listener compares the bus's clock with the local elapsed time. If the bus's clock is behind, the
// listener sends a heartbeat for every unacknowledged event, including those of other processes. The bus then
// records the present time, and redelivers after AckWait the events that no worker holds.
//
// Some steps go undetected: those while neither the bus nor the listener runs, and those forward and back between two
// checks. A heartbeat to a server that no longer leads is lost. So a listener also sends heartbeats when events stay
// unacknowledged for longer than a redelivery takes (renewals.go). It does not read the times in the log: the
// permission for that includes all subjects.

const (
	clockTolerance = time.Second // by which a clock may be behind without a consequence
	clockChecks    = 4           // within AckWait
	clockCheckMin  = time.Second
	clockCheckMax  = 10 * time.Second
)

// busClock is the known state of the bus's clock.
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

// atLeast is the clock's time at a local time if nobody has set it back.
func (c *busClock) atLeast(at time.Time) time.Time { return c.shown.Add(at.Sub(c.at)) }

// check records the bus's time between two local times, and returns by
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

// followClock renews the events in flight when the bus's clock is set back, and those that
// stay, until ctx ends.
func (r *runner) followClock(ctx context.Context) {
	interval := min(max(r.spec.AckWait/clockChecks, clockCheckMin), clockCheckMax)
	for {
		if back, unacked, err := r.checkClock(ctx); err == nil {
			r.follow(ctx, back, unacked)
		}
		if backoff.Sleep(ctx, interval) != nil {
			return
		}
	}
}

// follow renews the events in flight if that is due after a check of the clock.
func (r *runner) follow(ctx context.Context, back time.Duration, unacked span) {
	if back > clockTolerance {
		level := slog.LevelDebug // while clocks of several servers differ, it repeats
		r.steps.Do(func() { level = slog.LevelWarn })
		r.log.Log(ctx, level,
			"the bus's clock was set back; events that no worker holds are redelivered when they have waited again",
			"by", back.Round(time.Millisecond), "unacknowledged", unacked.count, "wait", r.spec.AckWait)
	}
	due, stay := r.renewals.due(time.Now(), back, unacked, r.spec.AckWait)
	if !due {
		return
	}
	if stay {
		r.log.InfoContext(ctx,
			"events stay unacknowledged; those that no worker holds are redelivered when they have waited again",
			"unacknowledged", unacked.count, "wait", r.spec.AckWait)
	}
	if err := r.renew(ctx, unacked); err != nil {
		r.renewals.failed()
		if ctx.Err() != nil {
			return
		}
		r.log.WarnContext(ctx,
			"the bus does not take heartbeats for events that stay unacknowledged; they are sent again later",
			"error", err)
	}
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
