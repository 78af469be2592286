package check

import (
	"belfry/pkg/event"
	"belfry/test/chaos/history"
)

// grace is how long after a deletion an object can be created and still be deleted with its target, in
// microseconds; docs/mapping.md has the rule.
const grace = 2_000_000

// cascades checks that every object was deleted that had to be deleted with its target, and no other. It
// compares times of objects with revisions, which are times too. Where the clock was stepped it permits what
// docs/clocks.md says of cascades.
func cascades(s *history.Segment, r *Report) {
	// The workers were sent the events of the log. Of the deletions that are only known from a lost log they
	// may have been sent nothing: belfry's repair finds these where the target is not there.
	handled, deletions := deletionsOf(s, s.Events), deletionsOf(s, s.Published())
	for o, state := range s.Final {
		store := history.StoreOf(o.Store)
		if !store.Cascade {
			continue
		}
		for _, uuid := range history.Targets(state.Body, store.Key) {
			undeleted(s, r, o, state, history.Object{Store: store.Target, UUID: uuid}, deletions, handled)
		}
	}
	counted := map[string]bool{}
	for _, e := range s.Events {
		if e.Deleted() && e.Origin == event.OriginCascade && !counted[e.ID] && !again(s, e) {
			counted[e.ID] = true
			r.Cascaded++
			if !justified(s, e, deletions) {
				r.add(WronglyDeleted, e.Object(),
					"a cascade deleted %s at revision %d; no target that it names was deleted", e.Envelope.Object,
					e.Revision)
			}
		}
	}
}

// deletionsOf returns the revisions of the deletions before the segment, and of those in some events.
func deletionsOf(s *history.Segment, events []history.Event) map[history.Object][]uint64 {
	all := map[history.Object][]uint64{}
	for o, revision := range s.Deleted {
		all[o] = append(all[o], revision)
	}
	for _, e := range events {
		if e.Deleted() {
			all[e.Object()] = append(all[e.Object()], e.Revision)
		}
	}
	return all
}

// undeleted checks an object that exists and names a target.
func undeleted(s *history.Segment, r *Report, o history.Object, state history.State, target history.Object,
	deletions, handled map[history.Object][]uint64) {
	if s.Final[target].Exists() {
		deletions = handled
	}
	var at uint64
	for _, revision := range deletions[target] {
		at = max(at, revision)
	}
	updated := history.Micros(state.Body, "updated")
	switch now := s.Final[target]; {
	case at == 0:
	case !now.Exists() && updated <= at+grace:
		r.add(Undeleted, o, "it was last written at %d and names %s, which was deleted at %d", updated, target, at)
	case now.Exists() && updated < at && !s.ClockSteps:
		r.add(Undeleted, o, "it was last written at %d and names %s, which was deleted at %d and created again",
			updated, target, at)
	}
}

// justified reports whether the deletion of an object follows that of a target that it named.
func justified(s *history.Segment, e history.Event, deletions map[history.Object][]uint64) bool {
	store := history.StoreOf(e.Store)
	if e.ObjectOmitted {
		return true
	}
	for _, uuid := range history.Targets(e.Envelope.Object, store.Key) {
		target := history.Object{Store: store.Target, UUID: uuid}
		if s.Unseen[target] || unseenDeletion(s, target) {
			return true
		}
		for _, at := range deletions[target] {
			if s.ClockSteps || at < e.Revision && history.Micros(e.Envelope.Object, "created") <= at+grace {
				return true
			}
		}
	}
	return false
}
