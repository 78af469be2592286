package check

import (
	"cmp"
	"slices"

	"belfry/pkg/event"
	"belfry/test/chaos/history"
)

// chain is the history of an object according to the log: its writes by revision, each once.
type chain struct {
	events     []history.Event // by revision
	byRevision map[uint64]history.Event
}

// again reports whether an event is one of a write before the segment.
func again(s *history.Segment, e history.Event) bool {
	return s.Known[e.ID] || e.Revision <= s.Start[e.Object()].Revision
}

func chains(s *history.Segment, r *Report) map[history.Object]*chain {
	all := map[history.Object]*chain{}
	for _, e := range s.Published() {
		if !e.Written() || again(s, e) {
			continue
		}
		c := all[e.Object()]
		if c == nil {
			c = &chain{byRevision: map[uint64]history.Event{}}
			all[e.Object()] = c
		}
		if was, twice := c.byRevision[e.Revision]; !twice {
			c.events = append(c.events, e)
			c.byRevision[e.Revision] = e
		} else if was.ID != e.ID && r != nil {
			r.add(AppliedTwice, e.Object(), "revision %d has two events, %s and %s", e.Revision, was.ID, e.ID)
		}
	}
	for _, c := range all {
		slices.SortFunc(c.events, func(a, b history.Event) int { return cmp.Compare(a.Revision, b.Revision) })
	}
	return all
}

// byClient reports whether a request of a client made a write.
func byClient(e history.Event) bool {
	return e.Origin == event.OriginHTTP || e.Origin == event.OriginBus
}

// versions compares the requests, and the objects at the end, with the log.
func versions(s *history.Segment, r *Report) {
	all := chains(s, r)
	made := map[string][]history.Event{} // writes by request
	titles := map[history.Object]map[string]history.Event{}
	for o, c := range all {
		titles[o] = map[string]history.Event{}
		for _, e := range c.events {
			if byClient(e) {
				made[e.Ctx.Request] = append(made[e.Ctx.Request], e)
				titles[o][history.FieldsOf(e.Envelope.Object).Text("title")] = e
			}
		}
	}
	known := map[string]bool{}
	for _, op := range slices.Concat(s.Ops, s.Carried) {
		known[op.Request] = true
		taken, writes := attempts(op, made[op.Request])
		if len(writes) > 1 {
			r.add(AppliedTwice, op.Object, "%s was made at revision %d and at %d", op, writes[0].Revision,
				writes[1].Revision)
		}
		switch {
		case !op.Kind.Writes():
			if op.Outcome == history.Done {
				readVersion(s, r, all[op.Object], op)
			}
		case op.Outcome == history.Refused:
			if len(writes) > 0 && !staysRefused(op, writes, all[op.Object]) {
				r.add(RefusedEvent, op.Object, "%s, but revision %d has an event of it", op, writes[0].Revision)
			} else if len(writes)+len(taken) > 0 {
				r.Undone++
			} else if e, written := titles[op.Object][op.Token()]; written && op.Token() != "" {
				r.add(RefusedEvent, op.Object, "%s, but revision %d has its title", op, e.Revision)
			}
		case op.Outcome == history.Done && len(writes) == 0 && before(s, op):
		case op.Outcome == history.Done && len(writes) == 0:
			r.add(LostEvent, op.Object, "%s has no event", op)
		case op.Outcome == history.Done:
			compareWrite(r, op, writes[0])
		}
	}
	for o, c := range all {
		for _, e := range c.events {
			if byClient(e) && !known[e.Ctx.Request] && history.StoreOf(o.Store).Name != "" {
				r.add(Unexplained, o, "the event at revision %d is of the request %q, which nobody sent", e.Revision,
					e.Ctx.Request)
			}
		}
	}
	for _, o := range s.Objects() {
		if history.StoreOf(o.Store).Name != "" {
			last(s, r, o, all[o])
		}
	}
}

// compareWrite compares an acknowledged write with its event.
func compareWrite(r *Report, op history.Op, e history.Event) {
	switch {
	case e.Object() != op.Object:
		r.add(EventDiffers, op.Object, "%s has the event of %s", op, e.Object())
	case e.Deleted() != (op.Kind == history.Delete):
		r.add(EventDiffers, op.Object, "%s has the event %s", op, e.Event)
	case op.Revision != 0 && op.Revision != e.Revision:
		r.add(EventDiffers, op.Object, "%s has its event at revision %d", op, e.Revision)
	case op.Body != nil && !e.ObjectOmitted && !e.Deleted() && !history.Same(op.Body, e.Envelope.Object):
		r.add(EventDiffers, op.Object, "%s: the reply is %s, the event's object %s", op, op.Body, e.Envelope.Object)
	}
}

// readVersion checks that what was read is a version of the object that the log has, or the one that it
// had at the start.
func readVersion(s *history.Segment, r *Report, c *chain, op history.Op) {
	body := s.Start[op.Object].Body
	if start := s.Start[op.Object]; start.Revision != op.Revision || !start.Exists() {
		var e history.Event
		found := false
		if c != nil {
			e, found = c.byRevision[op.Revision]
		}
		if !found && lostEvent(s, op.Object, op.Revision) {
			return
		}
		if !found {
			e.Envelope.Object, found = marked(s, c, op.Object, op.Revision)
		}
		if !found || e.Deleted() {
			r.add(DirtyRead, op.Object, "%s, a revision that has no event", op)
			return
		}
		if e.ObjectOmitted {
			return
		}
		body = e.Envelope.Object
	}
	if op.Body != nil && !history.Same(op.Body, body) {
		r.add(DirtyRead, op.Object, "%s returned %s; that revision is %s", op, op.Body, body)
	}
}

// last compares the object at the end with its last event.
func last(s *history.Segment, r *Report, o history.Object, c *chain) {
	start, final := s.Start[o], s.Final[o]
	if c == nil || len(c.events) == 0 {
		switch {
		case final.Exists() && lostEvent(s, o, final.Revision):
		case final.Exists() && start.Exists() && history.Restricted(o.Store) && history.Same(final.Body, start.Body):
		case final.Exists() && final.Revision > start.Revision:
			r.add(LostEvent, o, "it is at revision %d, which has no event", final.Revision)
		case !final.Exists() && unseenDeletion(s, o):
		case start.Exists() && final.Revision < start.Revision:
			r.add(LostWrite, o, "it was at revision %d and is at %d", start.Revision, final.Revision)
		}
		return
	}
	e := c.events[len(c.events)-1]
	switch {
	case e.Deleted() && !final.Exists():
	case !final.Exists() && unseenDeletion(s, o):
	case final.Revision > e.Revision && lostEvent(s, o, final.Revision):
	case final.Exists() && final.Revision > e.Revision && !history.Restricted(o.Store):
		r.add(LostEvent, o, "it is at revision %d, the last event at %d", final.Revision, e.Revision)
	case e.Deleted():
		r.add(LostWrite, o, "it is at revision %d, but was deleted at %d", final.Revision, e.Revision)
	case final.Revision < e.Revision:
		r.add(LostWrite, o, "it is at revision %d (0: not there), but its last event (%s by %s) at %d", final.Revision,
			e.Event, e.Origin, e.Revision)
	case !e.ObjectOmitted && !history.Same(final.Body, e.Envelope.Object):
		r.add(EventDiffers, o, "at revision %d it is %s, the event's object %s", final.Revision, final.Body,
			e.Envelope.Object)
	}
}
