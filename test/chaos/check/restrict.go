package check

import (
	"net/http"
	"slices"
	"strings"

	"belfry/test/chaos/history"
)

// A deletion under a reference that restricts it marks its object, which changes the revision and has no event. A write
// that newly names an object is made, and then taken back if the object was deleted meanwhile: it is refused and has
// an event, as has the write that takes it back. What was acknowledged wins: its object stays.

// mayBeUndone reports whether a write may have been made although it was refused.
func mayBeUndone(op history.Op) bool {
	return history.StoreOf(op.Object.Store).Restrict && op.Outcome == history.Refused &&
		op.Status == http.StatusBadRequest
}

// onlyMarkedSince reports whether nobody has written an object between the revision that its deletion expects and the
// deletion: reads may show later ones, of its mark.
func onlyMarkedSince(op history.Op, e history.Event, c *chain) bool {
	return e.Deleted() && history.Restricted(op.Object.Store) && !slices.ContainsFunc(c.events,
		func(other history.Event) bool { return other.Revision > op.IfMatch && other.Revision < e.Revision })
}

// undone is a write, and the one that takes it back.
type undone struct{ made, back history.Event }

// attempts splits the events of a request into those of writes that were taken back and the others.
func attempts(op history.Op, writes []history.Event) (taken []undone, made []history.Event) {
	if !history.StoreOf(op.Object.Store).Restrict || op.Kind == history.Delete {
		return nil, writes
	}
	for i := 0; i < len(writes); i++ {
		if i+1 < len(writes) && sets(op, writes[i]) && !sets(op, writes[i+1]) {
			taken = append(taken, undone{writes[i], writes[i+1]})
			i++
		} else {
			made = append(made, writes[i])
		}
	}
	return taken, made
}

// sets reports whether an event has what a request sets.
func sets(op history.Op, e history.Event) bool {
	return !e.Deleted() && history.Text(e.Envelope.Object, "title") == op.Token()
}

// staysRefused reports whether a refused request may leave its last write: another write came before it was taken back,
// or the request was repeated with its key after a crash, when nobody knows what was before.
func staysRefused(op history.Op, made []history.Event, c *chain) bool {
	return mayBeUndone(op) && len(made) == 1 &&
		(op.Bus || c != nil && c.events[len(c.events)-1].Revision > made[0].Revision)
}

// requests returns the requests that explain a write which was taken back.
func (u undone) requests(op history.Op) []history.Op {
	made, back := op, history.Op{
		Object: op.Object, Kind: history.Undo, Call: op.Call, Return: op.Return, Outcome: history.Done,
		Request: op.Request, Revision: u.back.Revision, Body: u.back.Envelope.Object,
	}
	made.Outcome, made.Revision, made.Body = history.Done, u.made.Revision, u.made.Envelope.Object
	if u.back.Deleted() {
		back.Kind, back.Body = history.Cascade, nil
	}
	return []history.Op{made, back}
}

// marked returns the version that an object has at a revision which a mark made: the one before it.
func marked(s *history.Segment, c *chain, o history.Object, revision uint64) (body []byte, found bool) {
	if !history.Restricted(o.Store) {
		return nil, false
	}
	if start := s.Start[o]; start.Exists() && start.Revision < revision {
		body, found = start.Body, true
	}
	if c == nil {
		return body, found
	}
	for _, e := range c.events {
		if e.Revision < revision {
			body, found = e.Envelope.Object, !e.Deleted()
		}
	}
	return body, found
}

// naming is the time in which an object names another one.
type naming struct {
	acknowledged bool
	from         int64 // when the write that names it was acknowledged
	until        int64 // when the one was requested that no longer does
	start, ended bool  // it names it since the start of the segment; it does not in the end
}

// restricts checks that no object was deleted that an acknowledged write names.
func restricts(s *history.Segment, r *Report) {
	all, ops := chains(s, nil), map[string]history.Op{}
	for _, op := range slices.Concat(s.Carried, s.Ops) {
		ops[op.Request] = op
		if mayBeUndone(op) {
			r.Named++
		}
		if history.Restricted(op.Object.Store) && op.Kind == history.Delete && op.Status == http.StatusConflict &&
			strings.Contains(op.Problem, "can't be deleted") {
			r.Restricted++
			if s.Loss == nil && !mayBeNamed(s, op) {
				r.add(WrongReply, op.Object, "%s, but no object can have named it", op)
			}
		}
	}
	deletions := deletionsOf(s, s.Published())
	for _, o := range s.Objects() {
		store := history.StoreOf(o.Store)
		if !store.Restrict {
			continue
		}
		for uuid, times := range namings(s, o, all[o], ops) {
			target := history.Object{Store: store.Target, UUID: uuid}
			for _, n := range times {
				if n.acknowledged {
					deletedWhile(r, o, target, n, all[target], ops)
				}
			}
			last := times[len(times)-1]
			known := store.Required || len(deletions[target]) > 0
			if last.start { // as at the last check, unless it was deleted again
				known = all[target] != nil
			}
			if last.acknowledged && !last.ended && !s.Final[target].Exists() && known {
				r.add(Dangling, o, "an acknowledged write names %s, which does not exist; it was deleted at %v", target,
					deletions[target])
			}
		}
	}
}

// deletedWhile checks that a target was not deleted from when a write was acknowledged that names it until another one
// was requested that does not.
func deletedWhile(r *Report, o, target history.Object, n naming, c *chain,
	ops map[string]history.Op) {
	if c == nil {
		return
	}
	for _, e := range c.events {
		op, known := ops[e.Ctx.Request]
		if e.Deleted() && byClient(e) && known && op.Outcome == history.Done && op.Call > n.from && op.Return < n.until {
			r.add(WronglyDeleted, target, "%s, while %s names it by an acknowledged write", op, o)
		}
	}
}

// namings returns when an object names others, by their uuids, without writes that were taken back.
func namings(s *history.Segment, o history.Object, c *chain, ops map[string]history.Op) map[string][]naming {
	key, all, now := history.StoreOf(o.Store).Key, map[string][]naming{}, ""
	name := func(uuid string, n naming) {
		if uuid == now {
			return
		}
		if before := all[now]; now != "" {
			before[len(before)-1].ended, before[len(before)-1].until = true, n.until
		}
		if now = uuid; now != "" {
			n.until = history.Never
			all[now] = append(all[now], n)
		}
	}
	one := func(body []byte) (uuid string) {
		if named := history.Targets(body, key); len(named) == 1 {
			uuid = named[0]
		}
		return uuid
	}
	name(one(s.Start[o].Body), naming{acknowledged: true, start: true})
	if c == nil {
		return all
	}
	back := map[string]bool{}
	byRequest := map[string][]history.Event{}
	for _, e := range c.events {
		if byClient(e) {
			byRequest[e.Ctx.Request] = append(byRequest[e.Ctx.Request], e)
		}
	}
	for request, events := range byRequest {
		taken, _ := attempts(ops[request], events)
		for _, u := range taken {
			back[u.made.ID], back[u.back.ID] = true, true
		}
	}
	for _, e := range c.events {
		if back[e.ID] {
			continue
		}
		op, known := ops[e.Ctx.Request]
		n := naming{acknowledged: known && op.Outcome == history.Done, from: op.Return, until: op.Call}
		if !known {
			n.until = 0
		}
		if e.Deleted() {
			name("", n)
		} else if !e.ObjectOmitted {
			name(one(e.Envelope.Object), n)
		}
	}
	return all
}

// mayBeNamed reports whether an object may have named another one before the reply to a request about that.
func mayBeNamed(s *history.Segment, about history.Op) bool {
	for _, store := range history.All() {
		if !store.Restrict || store.Target != about.Object.Store {
			continue
		}
		for o, state := range s.Start {
			if o.Store == store.Name && slices.Contains(history.Targets(state.Body, store.Key), about.Object.UUID) {
				return true
			}
		}
		for _, op := range slices.Concat(s.Carried, s.Ops) {
			if op.Object.Store == store.Name && op.Call < about.Return &&
				op.Fields.Text(store.Key) == about.Object.UUID {
				return true
			}
		}
	}
	return false
}

// Marked returns the objects that a deletion may have left marked: for some seconds writes that name them are refused.
func Marked(s *history.Segment) map[history.Object]bool {
	all := map[history.Object]bool{}
	for _, op := range slices.Concat(s.Carried, s.Ops) {
		if op.Kind == history.Delete && history.Restricted(op.Object.Store) && op.Outcome != history.Done {
			all[op.Object] = true
		}
	}
	return all
}
