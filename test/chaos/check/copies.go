package check

import (
	"slices"

	"belfry/test/chaos/history"
)

// copies compares every copy of a referenced object with its source. It is absent where the source is.
func copies(s *history.Segment, r *Report) {
	for o, state := range s.Final {
		for _, c := range history.StoreOf(o.Store).Copies {
			var source history.State
			named := history.Targets(state.Body, c.Reference)
			if len(named) == 1 {
				source = s.Final[history.Object{Store: c.Source, UUID: named[0]}]
			}
			r.Copies++
			if has, want := history.Value(state.Body, c.Field), history.Value(source.Body, c.From); has != want {
				r.add(WrongCopy, o, "%s is %q; %s of %s %v, at revision %d, is %q", c.Field, has, c.From, c.Source, named,
					source.Revision, want)
			}
		}
	}
}

// titlesSet has the titles that writes have set which were not refused, by object and by store.
type titlesSet map[history.Object]map[string]bool

func (t titlesSet) allow(o history.Object, title string) {
	for _, of := range []history.Object{o, {Store: o.Store}} {
		if t[of] == nil {
			t[of] = map[string]bool{}
		}
		t[of][title] = true
	}
}

// copied checks a copy in an object that was read: a write has set it as the title of some object of the store at the
// end of its chain. It may be another object than the named one, while processes have no such copy after a reload.
func (t titlesSet) copied(r *Report, op history.Op, c history.Copy) {
	title := history.Text(op.Body, c.Field)
	for c.From != "title" {
		all := history.StoreOf(c.Source).Copies
		next := slices.IndexFunc(all, func(n history.Copy) bool { return n.Field == c.From })
		if next < 0 {
			return // no title
		}
		c.Source, c.From = all[next].Source, all[next].From
	}
	if title != "" && !t[history.Object{Store: c.Source}][title] {
		r.add(DirtyRead, op.Object, "%s has in %s the title %q, which no write set in %s", op, c.Field, title, c.Source)
	}
}
