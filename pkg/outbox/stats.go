package outbox

import "sync/atomic"

type counters struct {
	published, refused, failures, dropped, clearFailures atomic.Uint64
	unavailable                                          atomic.Bool
}

// Stats are the statistics of a relay since NewRelay, and its current state.
type Stats struct {
	Published     uint64 // published events
	Refused       uint64 // permanent refusals by the bus; such an event stays in its record
	Failures      uint64 // failed attempts to publish a batch
	Dropped       uint64 // events left to a sweep because of the memory limits
	ClearFailures uint64 // failed attempts to clear published events

	Events      int  // in memory, not published yet
	Bytes       int  // of their payloads
	Sweeping    int  // stores whose sweep is due or in progress
	Unavailable bool // the last attempt to publish failed

	Stuck  int    // events in records that the bus refuses for good: at least so many
	Reason string // why it refuses the latest of them; "" without any
}

// Stats returns current statistics.
func (r *Relay) Stats() Stats {
	s := Stats{
		Published:     r.counters.published.Load(),
		Refused:       r.counters.refused.Load(),
		Failures:      r.counters.failures.Load(),
		Dropped:       r.counters.dropped.Load(),
		ClearFailures: r.counters.clearFailures.Load(),
		Unavailable:   r.counters.unavailable.Load(),
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Events, s.Bytes = r.held, r.bytes
	for _, src := range r.sources {
		s.Stuck += len(src.refused)
		if src.incomplete || src.pass != nil && !src.pass.abandoned {
			s.Sweeping++
		}
	}
	if s.Stuck > 0 {
		s.Reason = r.refusal
	}
	return s
}
