package listener

import (
	"log/slog"
	"strconv"

	"belfry/pkg/backoff"
	"belfry/pkg/bus"
	"belfry/pkg/event"
)

// newRetrier makes the runner that hears the dead letters which `belfry dlq
// retry` gives to the listener again: the same handler, on a stream where each
// listener has a subject of its own. They come one at a time, since they are
// few and may be what ends a process.
func newRetrier(b Bus, log *slog.Logger, spec Spec) *runner {
	spec.Concurrency, spec.BatchSize, spec.Prefetch, spec.Start = 1, 1, 0, All
	r := newRunner(b, log.With("stream", bus.StreamRetry), spec, spec.Name, []string{bus.RetryPrefix + spec.Name})
	r.stream = bus.StreamRetry
	return r
}

// locate notes where the log holds an event, of which a letter's headers tell
// when it comes as a retry.
func (r *runner) locate(d *delivery) {
	d.subject = d.msg.Subject
	if r.stream == bus.StreamRetry {
		d.subject = d.msg.Header.Get(HeaderSubject)
		d.Sequence, _ = strconv.ParseUint(d.msg.Header.Get(HeaderSequence), 10, 64)
	}
}

// haltOthers has the partition of a retried event stand still when the listener
// is ordered, in whatever process it is listened to: the retry comes from
// another consumer than the other events of its object. It reports false when
// the listener is asked to stop first.
func (r *runner) haltOthers(d *delivery) (goOn func(), halted bool) {
	if r.stream != bus.StreamRetry || !r.spec.Ordered {
		return func() {}, true
	}
	partition := partitioned(r.spec.Name, event.Partition(d.UUID))
	for wait := againMin; ; wait = min(2*wait, againMax) {
		h, err := halt(r.stopping, r.bus.JetStream(), partition, 2*r.spec.AckWait)
		if err == nil {
			return h.release, true
		}
		if wait == againMin {
			r.log.Warn("a retry waits for its partition to stand still", "event", d.ID, "partition", partition, "error", err)
		}
		if backoff.Sleep(r.stopping, wait) != nil {
			return nil, false
		}
	}
}
