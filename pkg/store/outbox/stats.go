package outbox

import "sync/atomic"

type counters struct {
	published, refused, failures, dropped, unclear atomic.Uint64
	away                                           atomic.Bool
}

// Stats is what a relay has done since it was made, and what it has to do.
type Stats struct {
	Published     uint64 // events that the bus took
	Refused       uint64 // times the bus refused an event for good; it stays in its record
	Failures      uint64 // times that publishing failed and is tried again
	Dropped       uint64 // events left to a sweep because memory was full
	ClearFailures uint64 // times that published events could not be cleared from their records

	Events      int  // in memory, not yet published
	Bytes       int  // of their payloads
	Sweeping    int  // stores whose records are being searched, or wait for that
	Unavailable bool // the bus did not take the last batch
}

// Stats returns the present numbers.
func (r *Relay) Stats() Stats {
	s := Stats{
		Published:     r.counters.published.Load(),
		Refused:       r.counters.refused.Load(),
		Failures:      r.counters.failures.Load(),
		Dropped:       r.counters.dropped.Load(),
		ClearFailures: r.counters.unclear.Load(),
		Unavailable:   r.counters.away.Load(),
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Events, s.Bytes = r.held, r.bytes
	for _, src := range r.sources {
		if src.marked || src.pass != nil && !src.pass.left {
			s.Sweeping++
		}
	}
	return s
}
