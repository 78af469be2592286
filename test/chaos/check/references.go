package check

import (
	"net/http"
	"slices"

	"belfry/pkg/event"
	"belfry/test/chaos/history"
)

// references checks what is named by references: a required one names an object that exists, one that is cleared
// names no deleted one, and was cleared only after a deletion.
func references(s *history.Segment, r *Report) {
	deletions := deletionsOf(s, s.Published())
	for o, state := range s.Final {
		store := history.StoreOf(o.Store)
		if store.Required && !store.Restrict {
			for _, uuid := range history.Targets(state.Body, store.Key) {
				if !s.Final[history.Object{Store: store.Target, UUID: uuid}].Exists() {
					r.add(Dangling, o, "its %s names %s %s, which does not exist", store.Key, store.Target, uuid)
				}
			}
		}
		for _, uuid := range history.Targets(state.Body, store.Cleared) {
			target := history.Object{Store: store.Clears, UUID: uuid}
			if !s.Final[target].Exists() && len(deletions[target]) > 0 {
				r.add(Dangling, o, "its %s names %s, which was deleted at %v", store.Cleared, target, deletions[target])
			}
		}
	}
	for o, c := range chains(s, nil) {
		store := history.StoreOf(o.Store)
		if store.Cleared == "" {
			continue
		}
		before := s.Start[o].Body
		for _, e := range c.events {
			if clears(e) && !e.ObjectOmitted {
				cleared(s, r, e, store, before, deletions)
			}
			before = e.Envelope.Object
		}
	}
	for _, op := range s.Ops {
		if store := history.StoreOf(op.Object.Store); (store.Required || store.Restrict) && len(op.Fields[store.Key]) > 0 {
			required(s, r, op, history.Object{Store: store.Target, UUID: op.Fields.Text(store.Key)})
		}
	}
}

// clears reports whether an event is that of a worker which has cleared a reference.
func clears(e history.Event) bool {
	return e.Event == event.StoreUpdated && e.Origin == event.OriginCascade
}

func cleared(s *history.Segment, r *Report, e history.Event, store history.Store, before []byte,
	deletions map[history.Object][]uint64) {
	r.Cleared++
	for _, uuid := range history.Targets(before, store.Cleared) {
		target := history.Object{Store: store.Clears, UUID: uuid}
		if slices.ContainsFunc(deletions[target], func(at uint64) bool { return s.ClockSteps || at < e.Revision }) ||
			s.Unseen[target] || unseenDeletion(s, target) {
			continue
		}
		r.add(WronglyCleared, e.Object(), "revision %d no longer has %s, which named %s: that was not deleted", e.Revision,
			store.Cleared, target)
	}
}

// required checks the reply to a write that names an object which has to exist: an object that certainly did not exist
// meanwhile can't be named in a new one, and one that certainly did is no reason to refuse it.
func required(s *history.Segment, r *Report, op history.Op, target history.Object) {
	about := slices.DeleteFunc(slices.Concat(s.Carried, s.Ops), func(other history.Op) bool {
		return other.Object != target || other.Kind.Writes() && other.Outcome == history.Refused
	})
	// until returns whether an op of a kind may have had its effect between a time and the reply.
	until := func(kind history.Kind, from int64) bool {
		return slices.ContainsFunc(about, func(other history.Op) bool {
			return other.Kind == kind && other.Return > from && other.Call < op.Return
		})
	}
	switch {
	case op.Kind == history.Create && op.Outcome == history.Done:
		gone := slices.ContainsFunc(about, func(other history.Op) bool {
			return other.Kind == history.Delete && other.Outcome == history.Done && other.Return < op.Call &&
				!until(history.Create, other.Call)
		})
		if gone {
			r.add(WrongReply, op.Object, "%s, but %s had been deleted before", op, target)
		}
	case op.Outcome == history.Refused && op.Status == http.StatusBadRequest && !mayBeDeleting(s, op, target):
		there := s.Start[target].Exists() && !until(history.Delete, -1) ||
			slices.ContainsFunc(about, func(other history.Op) bool {
				return other.Kind != history.Delete && other.Outcome == history.Done && other.Status < 300 &&
					other.Return < op.Call && !until(history.Delete, other.Call)
			})
		if there {
			r.add(WrongReply, op.Object, "%s, but %s was there", op, target)
		}
	}
}

// mayBeDeleting reports whether a deletion of an object, even one that is refused, may have had a write refused that
// names it.
func mayBeDeleting(s *history.Segment, op history.Op, target history.Object) bool {
	return history.Restricted(target.Store) && (s.Marked[target] || slices.ContainsFunc(s.Ops,
		func(other history.Op) bool {
			return other.Object == target && other.Kind == history.Delete && other.Call < op.Return
		}))
}
