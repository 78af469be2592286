package missed

import (
	"context"
	"time"

	"belfry/pkg/store"
)

// Reason is how events left the log before a listener had handled them.
type Reason string

// The reasons.
const (
	Expired  Reason = "expired"  // the log's retention removed them
	Replaced Reason = "replaced" // the log is another one: its folder or its stream was deleted
	// the log lacks the newest events that it had: an old copy of it was restored, and may have got others
	Truncated Reason = "truncated"
	Removed   Reason = "removed" // somebody removed events from between others
)

// Missed is the loss of a listener since the last repair or confirmation.
type Missed struct {
	Reason Reason `json:"reason"` // the latest

	// Events is how many it has missed: at most so many after Expired and Removed. After Replaced and
	// Truncated (AtLeast), it had not handled so many when the log was last read, and
	// those published afterwards may be missed too.
	Events  uint64 `json:"events"`
	AtLeast bool   `json:"atLeast,omitempty"`

	Since time.Time `json:"since"` // what was published before is handled
	Until time.Time `json:"until"` // when it was noticed

	Repaired  time.Time `json:"repaired,omitzero"`  // when belfry corrected what the listener maintains
	Confirmed time.Time `json:"confirmed,omitzero"` // when somebody confirmed that it is dealt with
}

// Open reports whether the loss is neither repaired nor confirmed.
func (m *Missed) Open() bool { return m != nil && m.Repaired.IsZero() && m.Confirmed.IsZero() }

// With returns what several consumers of one listener have missed. m may be nil.
func (m *Missed) With(other Missed) *Missed {
	switch {
	case m == nil, !m.Open() && other.Open():
		return &other
	case m.Open() && !other.Open():
		return m
	}
	other.Events += m.Events
	other.AtLeast = other.AtLeast || m.AtLeast
	if m.Since.Before(other.Since) {
		other.Since = m.Since
	}
	if m.Until.After(other.Until) {
		other.Until, other.Reason = m.Until, m.Reason
	}
	return &other
}

// position is the stored state of one consumer.
type position struct {
	Done    uint64    `json:"done"`    // every event of the log up to this sequence is handled
	Pending uint64    `json:"pending"` // events that were not
	Drained time.Time `json:"drained"` // when none was pending last
	Gone    time.Time `json:"gone,omitzero"`
	Missed  *Missed   `json:"missed,omitempty"`
}

// state is the stored state of a log, outside of the bus.
type state struct {
	Log  time.Time `json:"log"`  // when the log was created, which identifies it
	Last uint64    `json:"last"` // its last sequence
	// of the event at it: see eventlog.Mark; 0: it is not known
	Mark     uint64    `json:"mark,omitempty"`
	Read     time.Time `json:"read"`              // when it was read
	Settled  uint64    `json:"settled,omitempty"` // its last sequence at least the time settle before
	Settling mark      `json:"settling,omitzero"` // becomes Settled
	// events that are missing between its first and its last one
	Holes     int                  `json:"holes,omitempty"`
	Consumers map[string]*position `json:"consumers"`
	Repair    repair               `json:"repair,omitzero"`
}

// mark is the last sequence of a log at one moment.
type mark struct {
	Last uint64    `json:"last"`
	Read time.Time `json:"read"`
}

// settle is after how long an event is sure to count as pending. The server notifies its consumers of an event after it
// is in the log, usually within microseconds.
const settle = time.Second

// repair is a repair that a process is making.
type repair struct {
	Process string    `json:"process"`
	Began   time.Time `json:"began"`
	Renewed time.Time `json:"renewed"`
}

// observation is the state of a bus at one moment.
type observation struct {
	at          time.Time
	log         time.Time // when the log was created
	first, last uint64    // of its sequences, read before the consumers
	mark        uint64    // of the event at the last one; 0: it is not known
	others      bool      // the event at the last sequence that is remembered is another one
	holes       int       // events that are missing between the first and the last one
	removed     []uint64  // their sequences, where there are more than before
	consumers   map[string]consumer
	partial     bool // consumers are some of all
}

type consumer struct {
	floor   uint64 // every event up to this sequence is acknowledged, or has left the log
	pending uint64 // events not acknowledged
}

// goneAfter is for how long the position of a consumer that was deleted is kept.
const goneAfter = 24 * time.Hour

// observe updates the state, and returns the consumers for which it has noticed that
// events are missed.
//
// A consumer's own acknowledgment floor does not tell what was missed, because the
// server raises it when unacknowledged events leave the log. So the floor that was
// remembered is compared: events above it that have left the log since then count as
// missed, although the listener may have handled some of them in the meantime.
func (s *state) observe(o observation) (found []string) {
	reason := Reason("")
	switch {
	case s.Log.IsZero():
	case !s.Log.Equal(o.log):
		reason = Replaced
	case o.last < s.Last || o.others:
		reason = Truncated
	}
	if s.Consumers == nil {
		s.Consumers = map[string]*position{}
	}
	settled, settling := s.settle(reason, o)
	for name, p := range s.Consumers {
		seen, present := o.consumers[name]
		lost := p.noticed(reason, s, o, present)
		if reason == "" && present && p.noticedRemoved(o) {
			lost = true
		}
		if lost {
			found = append(found, name)
		}
		switch {
		case present:
			p.update(seen, o, settled)
		case o.partial:
		case p.Gone.IsZero():
			p.Gone = o.at
		case o.at.Sub(p.Gone) > goneAfter && !p.Missed.Open():
			delete(s.Consumers, name)
		}
	}
	for name, seen := range o.consumers {
		if s.Consumers[name] == nil {
			p := &position{Drained: o.log} // what was before is not known
			p.update(seen, o, settled)
			s.Consumers[name] = p
		}
	}
	s.Log, s.Last, s.Mark, s.Read, s.Settled, s.Settling, s.Holes = o.log, o.last, o.mark, o.at, settled, settling,
		o.holes
	return found
}

// settle returns the sequence up to which every event that is not pending was handled, and what comes after it.
func (s *state) settle(reason Reason, o observation) (uint64, mark) {
	now := mark{Last: o.last, Read: o.at}
	switch {
	case reason != "" || s.Log.IsZero():
		return 0, now
	case o.at.Sub(s.Settling.Read) < settle:
		return s.Settled, s.Settling
	}
	return s.Settling.Last, now
}

// noticed records the loss of a consumer, and reports whether it is new.
func (p *position) noticed(reason Reason, s *state, o observation, present bool) bool {
	switch {
	case reason == Replaced:
		p.miss(Missed{Reason: reason, Events: p.Pending, AtLeast: true, Since: p.Drained, Until: o.at})
		p.Done, p.Pending = o.first-min(o.first, 1), 0
	case reason == Truncated:
		p.miss(Missed{Reason: reason, Events: p.Pending, AtLeast: true, Since: p.Drained, Until: o.at})
		p.Done, p.Pending = min(p.Done, o.last), 0
	case present && o.first > p.Done+1:
		most := o.first - 1 - p.Done
		if last := o.first - 1; last <= s.Last {
			most = min(most, p.Pending)
		} else {
			most = min(most, p.Pending+last-s.Last)
		}
		p.miss(Missed{Reason: Expired, Events: most, Since: p.Drained, Until: o.at})
	default:
		return false
	}
	return true
}

// noticedRemoved records the events that were removed from between others before they were known to be handled. Of
// those that were removed earlier some may be counted again.
func (p *position) noticedRemoved(o observation) bool {
	n := 0
	for _, sequence := range o.removed {
		if sequence > p.Done {
			n++
		}
	}
	if n == 0 {
		return false
	}
	p.miss(Missed{Reason: Removed, Events: uint64(n), Since: p.Drained, Until: o.at}) //nolint:gosec // a length
	return true
}

// miss adds to the open loss.
func (p *position) miss(m Missed) {
	if p.Missed.Open() {
		m.Events += p.Missed.Events
		m.AtLeast = m.AtLeast || p.Missed.AtLeast
		m.Since = p.Missed.Since
	}
	p.Missed = &m
}

func (p *position) update(seen consumer, o observation, settled uint64) {
	p.Gone, p.Pending = time.Time{}, seen.pending
	p.Done = max(p.Done, seen.floor, o.first-min(o.first, 1))
	if seen.pending == 0 {
		p.Done, p.Drained = max(p.Done, settled), o.at
	}
}

// open reports whether any of these consumers has an open loss.
func (s *state) open(consumers []string) bool {
	for _, name := range consumers {
		if p := s.Consumers[name]; p != nil && p.Missed.Open() {
			return true
		}
	}
	return false
}

// repaired marks what these consumers had missed when a repair began.
func (s *state) repaired(consumers []string, began, now time.Time) {
	for _, name := range consumers {
		if p := s.Consumers[name]; p != nil && p.Missed.Open() && !p.Missed.Until.After(began) {
			p.Missed.Repaired = now
		}
	}
}

// Restored adapts the stored positions to a log that a restore has created, with other
// sequences. next has the sequence of the first event that each consumer receives.
// Events that were handled before do not count as a loss, and previous losses stay.
// Nothing else may use the store.
func Restored(ctx context.Context, s *store.Store, next map[string]uint64) error {
	remembered, revision, err := shared(s).Get(ctx)
	if err != nil || revision == 0 {
		return err
	}
	for name, p := range remembered.Consumers {
		first, restored := next[name]
		if !restored && p.Missed == nil {
			delete(remembered.Consumers, name)
			continue
		}
		p.Done, p.Pending = max(first, 1)-1, 0
	}
	after := state{Consumers: remembered.Consumers, Read: remembered.Read}
	_, err = shared(s).Put(ctx, after, revision)
	return err
}
