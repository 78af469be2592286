package history

import (
	"cmp"
	"slices"

	"belfry/pkg/event"
)

// Event is an event of the log.
type Event struct {
	event.Envelope
	Sequence uint64
}

// Object is the object that the event is about.
func (e Event) Object() Object { return Object{e.Store, e.UUID} }

// Written reports whether the event is that of a write of a store, of which each write has one.
func (e Event) Written() bool {
	return e.Event == event.StoreSaved || e.Event == event.StoreUpdated || e.Event == event.StoreDeleted
}

// Deleted reports whether the event is that of a deletion.
func (e Event) Deleted() bool { return e.Event == event.StoreDeleted }

// Account is what is known of an address that was registered, when nothing is pending.
type Account struct {
	Address      string
	Acknowledged bool
	User         string // the uuid of the user that logs in; "" when no password works
}

// User is an object of the store of users.
type User struct {
	UUID, Address string
	Idents        []struct{ UUID, Type string }
}

// Segment is the part of a history between two times at which nothing was pending.
type Segment struct {
	Start, Final map[Object]State // what GET returned. At the start, a deleted object has the revision of its deletion
	Listed       map[Object]State // what the lists returned at the end
	Ops          []Op
	Carried      []Op // writes of the segment before whose outcome is still unknown

	// The log. If it was lost, that which came after it.
	Events []Event
	// ids of events of the segments before: a power cut can set the position of a listener back
	Known    map[string]bool
	Received map[string]bool   // ids of the events that a durable listener received
	Deleted  map[Object]uint64 // revision of the last deletion of each object, before the segment
	Loss     *Loss             // nil: the log was not lost
	Unseen   map[Object]bool   // objects that may have been deleted before the segment by an event that was lost

	// objects that a deletion before the segment may have left marked: writes that name them may be refused
	Marked map[Object]bool

	// Ordered says that one process writes all objects, so that their events are published in the order
	// of their revisions.
	Ordered bool
	// ClockSteps says that the wall clock of all processes was stepped, so that times do not tell what came first.
	ClockSteps bool

	// contents of the files that objects have at the end, by hash as recorded; nil: could not be read
	Files map[string][]byte
}

// Loss is what is known of a log that was lost.
type Loss struct {
	At       int64   // when it was: events of writes that were sent before may be lost with it
	Received []Event // that a durable listener had received since the last check
}

// Objects returns all objects that the segment is about, sorted.
func (s *Segment) Objects() []Object {
	set := map[Object]bool{}
	for _, op := range s.Ops {
		set[op.Object] = true
	}
	for _, e := range s.Published() {
		if StoreOf(e.Store).Name != "" {
			set[e.Object()] = true
		}
	}
	for _, m := range []map[Object]State{s.Start, s.Final} {
		for o := range m {
			set[o] = true
		}
	}
	all := make([]Object, 0, len(set))
	for o := range set {
		all = append(all, o)
	}
	slices.SortFunc(all, Compare)
	return all
}

// Published returns the events that are known: with a loss also those that the listener received before.
func (s *Segment) Published() []Event {
	if s.Loss == nil {
		return s.Events
	}
	return slices.Concat(s.Loss.Received, s.Events)
}

// Compare orders objects by store and uuid.
func Compare(a, b Object) int {
	return cmp.Or(cmp.Compare(a.Store, b.Store), cmp.Compare(a.UUID, b.UUID))
}
