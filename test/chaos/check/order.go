package check

import (
	"belfry/test/chaos/history"
)

// order checks the log itself: the order of each object's events, and what a durable listener received.
// An event can come again, with the same id.
func order(s *history.Segment, r *Report) {
	seen := map[string]bool{}
	type key struct {
		object history.Object
		name   string
	}
	newest := map[key]history.Event{}
	for _, e := range s.Events {
		if seen[e.ID] || again(s, e) {
			r.Repeated++
			continue
		}
		seen[e.ID] = true
		r.Events++
		// Events of one write have one revision, and an order of their own.
		k := key{e.Object(), string(e.Event)}
		if e.Written() {
			k.name = "Store"
		}
		if before, ok := newest[k]; ok && e.Revision < before.Revision {
			r.Reordered++
			if s.Ordered {
				r.add(EventOrder, e.Object(), "%s at revision %d comes at %d of the log, after revision %d at %d",
					e.Event, e.Revision, e.Sequence, before.Revision, before.Sequence)
			}
			continue
		}
		newest[k] = e
	}
	if s.Received == nil {
		return
	}
	for _, e := range s.Events {
		if !s.Received[e.ID] && !again(s, e) {
			r.add(NotDelivered, e.Object(), "%s at revision %d (%s)", e.Event, e.Revision, e.ID)
		}
	}
	for _, e := range s.Published() {
		seen[e.ID] = true
	}
	for id := range s.Received {
		if !seen[id] && !s.Known[id] {
			r.add(EventTakenBack, name(id), "a listener received it, the log does not have it")
		}
	}
}
