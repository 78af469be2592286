package check

import (
	"cmp"
	"slices"

	"belfry/test/chaos/history"
)

// byObject groups requests by their object.
func byObject(ops []history.Op) map[history.Object][]history.Op {
	all := map[history.Object][]history.Op{}
	for _, op := range ops {
		all[op.Object] = append(all[op.Object], op)
	}
	return all
}

// durable checks, from replies alone, that what was acknowledged or read is there at the end or was
// superseded. It needs no log.
func durable(s *history.Segment, r *Report) {
	for o, ops := range byObject(s.Ops) {
		var newest history.Op
		for _, op := range ops {
			if op.Outcome == history.Done && op.Revision > newest.Revision && op.Kind != history.Delete {
				newest = op
			}
		}
		final := s.Final[o]
		kind := LostWrite
		if !newest.Kind.Writes() {
			kind = DirtyRead
		}
		switch {
		case final.Revision >= newest.Revision:
		case final.Exists():
			r.add(kind, o, "%s, but it is at revision %d in the end", newest, final.Revision)
		case !mayBeDeleted(s, o, ops, newest):
			r.add(kind, o, "%s, but it is not there in the end, and nothing deleted it", newest)
		}
	}
}

// mayBeDeleted reports whether anything deletes an object after a request.
func mayBeDeleted(s *history.Segment, o history.Object, ops []history.Op, after history.Op) bool {
	if history.StoreOf(o.Store).Cascade {
		return s.Loss == nil || unseenDeletion(s, o) || deletedLater(s, o, after.Revision) // else judged by cascades
	}
	if history.StoreOf(o.Store).Restrict && (deletedLater(s, o, after.Revision) || unseenDeletion(s, o)) {
		return true
	}
	return slices.ContainsFunc(slices.Concat(ops, s.Carried), func(op history.Op) bool {
		return op.Object == o && op.Kind == history.Delete && op.Outcome != history.Refused && op.Return > after.Call
	})
}

// stale checks that no reply is about an older revision than one that was known before the request.
func stale(s *history.Segment, r *Report) {
	for o, ops := range byObject(s.Ops) {
		called := slices.Clone(ops)
		slices.SortFunc(called, func(a, b history.Op) int { return cmp.Compare(a.Call, b.Call) })
		returned := slices.Clone(ops)
		slices.SortFunc(returned, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
		known := history.Op{Kind: history.Get, Revision: s.Start[o].Revision}
		for _, op := range called {
			for len(returned) > 0 && returned[0].Return < op.Call {
				if returned[0].Outcome == history.Done && returned[0].Revision > known.Revision {
					known = returned[0]
				}
				returned = returned[1:]
			}
			if op.Outcome == history.Done && op.Revision != 0 && op.Revision < known.Revision {
				r.add(StaleRead, o, "%s, after %s", op, known)
			}
		}
	}
}

// tokens checks that every title that was read, in an object or in a copy of it, was set by a write that
// was not refused.
func tokens(s *history.Segment, r *Report) {
	allowed := titlesSet{}
	for o, state := range s.Start {
		allowed.allow(o, history.FieldsOf(state.Body).Text("title"))
	}
	for _, op := range slices.Concat(s.Ops, s.Carried) {
		if op.Kind.Writes() && (op.Outcome != history.Refused || mayBeUndone(op)) {
			allowed.allow(op.Object, op.Token())
		}
	}
	for _, op := range s.Ops {
		if op.Outcome != history.Done || op.Body == nil {
			continue
		}
		if title := history.FieldsOf(op.Body).Text("title"); !allowed[op.Object][title] {
			r.add(DirtyRead, op.Object, "%s has the title %q, which no write set", op, title)
		}
		for _, c := range history.StoreOf(op.Object.Store).Copies {
			allowed.copied(r, op, c)
		}
		for _, source := range history.All() {
			if source.Target != op.Object.Store || source.Array == "" {
				continue
			}
			entries, err := history.Entries(op.Body, source.Array)
			if err != nil {
				r.add(WrongArray, op.Object, "%s: %v", op, err)
			}
			for _, e := range entries {
				if o := (history.Object{Store: source.Name, UUID: e.UUID}); !allowed[o][e.Title] {
					r.add(DirtyRead, op.Object, "%s has a copy of %s with the title %q, which no write set", op, o,
						e.Title)
				}
			}
		}
	}
}
