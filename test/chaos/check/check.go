// Package check judges what clients of a belfry saw: whether every acknowledged write is there with its
// event, whether reads and conditional writes of each object are linearizable, whether copies equal their
// objects, and whether nothing was shown that is not durable.
package check

import (
	"fmt"

	"belfry/test/chaos/history"
)

// Kind is a kind of violation.
type Kind string

// The kinds of violations.
const (
	LostWrite       Kind = "lost write"          // an acknowledged write is not there
	LostEvent       Kind = "lost event"          // a write has no event
	RefusedEvent    Kind = "refused write made"  // a refused write was made, or has an event
	AppliedTwice    Kind = "applied twice"       // one request made two writes
	Unexplained     Kind = "unexplained event"   // an event of no request and no worker
	EventDiffers    Kind = "event differs"       // from the reply to the write
	EventTakenBack  Kind = "event taken back"    // a listener received an event that the log does not have
	NotDelivered    Kind = "event not delivered" // the log has an event that a listener did not receive
	EventOrder      Kind = "event order"         // of one object, with one process that writes
	DirtyRead       Kind = "dirty read"          // what was read was never durable
	StaleRead       Kind = "stale read"          // a read returned less than what was acknowledged before it
	NotLinearizable Kind = "not linearizable"    // no order of the requests explains the replies
	Undecided       Kind = "undecided"           // whether they are linearizable was not found out in time
	WrongArray      Kind = "wrong array"         // a copy differs from its object
	Undeleted       Kind = "cascade incomplete"  // an object was not deleted with its target
	WronglyDeleted  Kind = "wrongly deleted"     // a cascade deleted an object that it should not have
	WrongCopy       Kind = "wrong copy"          // a copy of a referenced object differs from its source
	WrongAggregate  Kind = "wrong aggregate"     // an aggregate differs from the objects that name its target
	Dangling        Kind = "dangling reference"  // an object names a deleted one, and its reference says that it can't
	WronglyCleared  Kind = "wrongly cleared"     // a reference was cleared whose object was not deleted
	WrongList       Kind = "wrong list"          // a list differs from the objects
	WrongFile       Kind = "wrong file"          // a file is lost, or its content is not what was uploaded
	WrongAccount    Kind = "wrong account"       // a user is lost, or there are two
	WrongReply      Kind = "wrong reply"         // a reply is wrong by itself
	Verify          Kind = "verify"              // belfry verify found differences
	DeadLetter      Kind = "dead letter"         // a worker gave up an event
	NotSettled      Kind = "not settled"         // work was pending for ever
	LossUnreported  Kind = "loss not reported"   // the log was lost, and belfry did not say so, or did not repair
)

// Violation is one promise that was broken.
type Violation struct {
	Kind   Kind
	Object string // or what else it is about
	Text   string
}

func (v Violation) String() string { return fmt.Sprintf("%s: %s: %s", v.Kind, v.Object, v.Text) }

// Report collects violations and figures.
type Report struct {
	Violations []Violation
	Events     int // of the log, those that came again left out
	Repeated   int // events that came again with the same id
	Reordered  int // events that came after one of a later revision, where order is not promised
	Entries    int // copies in arrays that were compared
	Copies     int // of referenced objects that were compared
	Aggregates int // that were compared
	Objects    int // objects that existed at the end
	Cascaded   int // objects that were deleted with their target
	Cleared    int // references that were cleared, since their object was deleted
	Restricted int // deletions that were refused, since objects name the object
	Named      int // writes that were refused, since they name an object that was deleted or is being deleted
	Undone     int // of these, those that had been made before
	Overflows  int // arrays at their limit with more objects than entries
}

func (r *Report) add(kind Kind, object fmt.Stringer, format string, args ...any) {
	r.Violations = append(r.Violations, Violation{kind, object.String(), fmt.Sprintf(format, args...)})
}

// name is what a violation is about when it isn't an object.
type name string

func (n name) String() string { return string(n) }

// Segment makes every check that needs nothing but the segment.
func Segment(s *history.Segment) *Report {
	r := &Report{Objects: len(s.Final)}
	versions(s, r)
	order(s, r)
	cascades(s, r)
	durable(s, r)
	stale(s, r)
	tokens(s, r)
	linear(s, r)
	arrays(s, r)
	copies(s, r)
	aggregates(s, r)
	references(s, r)
	restricts(s, r)
	lists(s, r)
	files(s, r)
	return r
}
