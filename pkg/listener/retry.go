package listener

import (
	"log/slog"
	"strconv"

	"belfry/internal/backoff"
	"belfry/pkg/bus"
	"belfry/pkg/event"
)

// newRetryRunner returns the runner for the dead letters that `belfry dlq retry`
// sends to the listener again: the same handler, on a stream where each listener
// has a subject of its own. They are handled one at a time, since they are few
// and may be poison messages.
func newRetryRunner(b Bus, log *slog.Logger, spec Spec) *runner {
	spec.Concurrency, spec.BatchSize, spec.Prefetch, spec.Start = 1, 1, 0, StartAll()
	r := newRunner(b, log.With("stream", bus.StreamRetry), spec, spec.Name, []string{bus.RetryPrefix + spec.Name})
	r.stream = bus.StreamRetry
	return r
}

// locate sets the event's subject and sequence in the log. A retried dead letter
// has them in its headers.
func (r *runner) locate(d *delivery) {
	d.subject = d.msg.Subject
	if r.stream == bus.StreamRetry {
		d.subject = d.msg.Header.Get(HeaderSubject)
		d.Sequence, _ = strconv.ParseUint(d.msg.Header.Get(HeaderSequence), 10, 64)
	}
}

// pausePartition pauses the partition of a retried event of an ordered listener,
// in all processes: the retry is delivered by another consumer than the other
// events of its object. It reports false when the listener is stopped first.
func (r *runner) pausePartition(d *delivery) (resume func(), ok bool) {
	if r.stream != bus.StreamRetry || !r.spec.Ordered {
		return func() {}, true
	}
	partition := partitionConsumer(r.spec.Name, event.Partition(d.UUID))
	for delays := backoff.New(retryMin, retryMax); ; {
		p, err := pauseConsumer(r.stopping, r.bus.JetStream(), partition, 2*r.spec.AckWait)
		if err == nil {
			return p.resume, true
		}
		if delays.Failed() == 0 {
			r.log.Warn("a retry waits for its partition to pause", "event", d.ID, "partition", partition, "error", err)
		}
		if delays.Wait(r.stopping) != nil {
			return nil, false
		}
	}
}
