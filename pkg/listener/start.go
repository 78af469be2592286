package listener

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Start is the position in the log of a listener whose consumer does not exist
// yet. An existing consumer keeps its position; `belfry listener reset` moves it.
// The zero Start is StartNew.
type Start struct {
	all      bool
	time     time.Time
	sequence uint64
}

// StartNew starts with the events that reach the log from now on.
func StartNew() Start { return Start{} }

// StartAll starts with the oldest event in the log.
func StartAll() Start { return Start{all: true} }

// StartAtTime starts with the events that reached the log at a time or later.
func StartAtTime(t time.Time) Start { return Start{time: t} }

// StartAtSequence starts with the event of a sequence in the log.
func StartAtSequence(n uint64) Start { return Start{sequence: n} }

// deliverPolicy sets the position of a consumer that is created.
func (s Start) deliverPolicy(c *jetstream.ConsumerConfig) {
	switch {
	case s.all:
		c.DeliverPolicy = jetstream.DeliverAllPolicy
	case s.sequence > 0:
		c.DeliverPolicy, c.OptStartSeq = jetstream.DeliverByStartSequencePolicy, s.sequence
	case !s.time.IsZero():
		t := s.time
		c.DeliverPolicy, c.OptStartTime = jetstream.DeliverByStartTimePolicy, &t
	default:
		c.DeliverPolicy = jetstream.DeliverNewPolicy
	}
}
