package check

import (
	"math"
	"slices"

	"belfry/test/chaos/history"
)

// When the log is lost, so are events of writes that were sent before: those that were published, and that the
// listener had not received. Everything else holds: writes stay, those that are sent later have their events,
// and an event that a write has in its record still is published in the next log.

// before reports whether the event of a request may be lost with the log.
func before(s *history.Segment, op history.Op) bool { return s.Loss != nil && op.Call < s.Loss.At }

// lostEvent reports whether the event of an object's revision may be lost with the log: it is not after a
// write that was sent after the loss.
func lostEvent(s *history.Segment, o history.Object, revision uint64) bool {
	if s.Loss == nil {
		return false
	}
	first := uint64(math.MaxUint64)
	for _, op := range s.Ops {
		if op.Object == o && op.Kind.Writes() && op.Outcome == history.Done && op.Revision > 0 && !before(s, op) {
			first = min(first, op.Revision)
		}
	}
	return revision < first
}

// unseenDeletion reports whether an object may have been deleted without an event that is known.
func unseenDeletion(s *history.Segment, o history.Object) bool {
	return s.Loss != nil && (requestedDeletion(s, o) || unseenCascade(s, o))
}

// requestedDeletion reports whether a client's deletion of an object may have been made before the loss.
func requestedDeletion(s *history.Segment, o history.Object) bool {
	return slices.ContainsFunc(slices.Concat(s.Carried, s.Ops), func(op history.Op) bool {
		return op.Object == o && before(s, op) && (op.Kind == history.Delete && op.Outcome != history.Refused ||
			op.Kind == history.Create && mayBeUndone(op))
	})
}

// unseenUndo reports whether a write may have been taken back without an event that is known: reads may have shown it.
func unseenUndo(s *history.Segment, ops []history.Op) bool {
	return slices.ContainsFunc(ops, func(op history.Op) bool {
		return before(s, op) && history.StoreOf(op.Object.Store).Restrict && op.Kind.Writes() && op.Outcome != history.Done
	})
}

// unseenCascade reports whether a worker may have deleted an object without an event that is known: a target
// that it named may have been deleted before the loss.
func unseenCascade(s *history.Segment, o history.Object) bool {
	store := history.StoreOf(o.Store)
	if s.Loss == nil || !store.Cascade {
		return false
	}
	return slices.ContainsFunc(named(s, o), func(uuid string) bool {
		target := history.Object{Store: store.Target, UUID: uuid}
		return unseenDeletion(s, target) || slices.ContainsFunc(s.Loss.Received, func(e history.Event) bool {
			return e.Deleted() && e.Object() == target
		})
	})
}

// named returns the targets that an object may have named.
func named(s *history.Segment, o history.Object) []string {
	key := history.StoreOf(o.Store).Key
	all := history.Targets(s.Start[o].Body, key)
	for _, op := range slices.Concat(s.Carried, s.Ops) {
		if op.Object == o && op.Outcome != history.Refused {
			all = append(all, op.Fields.Text(key))
		}
	}
	return all
}

// deletedLater reports whether a known event deleted an object after a revision.
func deletedLater(s *history.Segment, o history.Object, revision uint64) bool {
	return slices.ContainsFunc(s.Published(), func(e history.Event) bool {
		return e.Deleted() && e.Object() == o && e.Revision > revision
	})
}

// Unseen returns the objects that may have been deleted without an event that is known.
func Unseen(s *history.Segment) map[history.Object]bool {
	all := map[history.Object]bool{}
	for _, o := range s.Objects() {
		if unseenDeletion(s, o) {
			all[o] = true
		}
	}
	return all
}
