package listener

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Start says which events a listener sees that is new to the log. Where one
// started stays as it was; `belfry listener reset` moves it.
type Start struct {
	all  bool
	at   time.Time
	from uint64
}

// Where a new listener starts.
var (
	New = Start{}          // events from now on
	All = Start{all: true} // everything that the log still holds
)

// FromTime starts with the events that reached the log at a time or later.
func FromTime(at time.Time) Start { return Start{at: at} }

// FromSequence starts with the event at a place in the log.
func FromSequence(n uint64) Start { return Start{from: n} }

// deliver says where a consumer begins that is not there yet.
func (s Start) deliver(c *jetstream.ConsumerConfig) {
	switch {
	case s.all:
		c.DeliverPolicy = jetstream.DeliverAllPolicy
	case s.from > 0:
		c.DeliverPolicy, c.OptStartSeq = jetstream.DeliverByStartSequencePolicy, s.from
	case !s.at.IsZero():
		at := s.at
		c.DeliverPolicy, c.OptStartTime = jetstream.DeliverByStartTimePolicy, &at
	default:
		c.DeliverPolicy = jetstream.DeliverNewPolicy
	}
}
