package search_test

import "testing"

// The model: one object, which clients write, a log, and an index, whose process crashes at any moment. The object is
// its number of writes, which the index has to have in the end.

const writes = 4

// moment is a state of the model.
type moment struct {
	object, published int // writes, and how many of them have an event in a log
	log               int // which one: another one is empty
	first, last       int // events of the log
	replaced, expired bool

	// On the disk of the index.
	built    bool
	of       int // log
	followed int
	has      int // what the index has of the object

	// Also on disk: a build that has read the object, and has more to read.
	place             bool
	placeOf, placeEnd int // the log, and where it ended when the build began
	placeHas          int

	// In the memory of its process.
	doing      step
	upTo, log0 int // of what is being done: the log, and where it ends
	seen       int
}

type step int

const (
	idle step = iota
	building
	buildRead
	following
	followRead
)

// protocol says what the process does; each of the others is wrong in one way.
type protocol struct{ storeFirst, readFirst, anyLog, anyStart, newEnd bool }

// follows reports whether the process takes the log for the one that the index follows.
func (p protocol) follows(m moment) bool {
	return m.built && (p.anyLog || m.of == m.log) && (p.anyStart || m.first <= m.followed+1) && m.followed <= m.last
}

// continues reports whether the process takes the log for the one that an unfinished build is to follow.
func (p protocol) continues(m moment) bool {
	return m.place && m.placeOf == m.log && m.first <= m.placeEnd+1 && m.placeEnd <= m.last
}

// news reports whether the log has an event after those that the index has followed.
func (m moment) news() bool { return max(m.first, m.followed+1) <= m.last }

// next returns what may come after a moment.
func (p protocol) next(m moment) (all []moment) {
	add := func(change func(*moment)) {
		n := m
		change(&n)
		all = append(all, n)
	}
	if m.object < writes {
		add(func(n *moment) { n.object++ })
	}
	if m.published < m.object {
		add(func(n *moment) { n.published++; n.last++ })
	}
	if !m.replaced {
		add(func(n *moment) { n.replaced, n.log, n.first, n.last = true, n.log+1, 1, 0 })
	}
	if !m.expired {
		add(func(n *moment) { n.expired, n.first = true, n.last+1 })
	}
	if m.doing != idle {
		add(func(n *moment) { n.doing, n.upTo, n.log0, n.seen = idle, 0, 0, 0 }) // a crash
	}
	end := func(n *moment) { n.upTo, n.log0 = n.last, n.log }
	read := func(n *moment) { n.seen = n.object }
	// Two steps, in the order that is right or in the other one.
	begin := func(to step, otherwise bool) {
		add(func(n *moment) {
			if n.doing = to; otherwise {
				read(n)
			} else {
				end(n)
			}
		})
	}
	goOn := func(to step, otherwise bool) {
		add(func(n *moment) {
			if n.doing = to; otherwise {
				end(n)
			} else {
				read(n)
			}
		})
	}
	switch m.doing {
	case idle:
		switch {
		case p.follows(m):
		case p.continues(m):
			add(func(n *moment) {
				n.doing, n.log0, n.upTo, n.seen = buildRead, n.placeOf, n.placeEnd, n.placeHas
				if p.newEnd {
					n.upTo = n.last
				}
			})
		default:
			begin(building, p.storeFirst)
		}
		if m.built && m.news() { // whether the log is the same is not known at each moment
			begin(following, p.readFirst)
		}
	case building:
		goOn(buildRead, p.storeFirst)
	case following:
		goOn(followRead, p.readFirst)
	case buildRead:
		if !m.place {
			add(func(n *moment) { n.place, n.placeOf, n.placeEnd, n.placeHas = true, n.log0, n.upTo, n.seen })
		}
		add(func(n *moment) {
			n.place, n.placeOf, n.placeEnd, n.placeHas = false, 0, 0, 0
			n.built, n.of, n.followed, n.has = true, n.log0, n.upTo, n.seen
			n.doing, n.upTo, n.log0, n.seen = idle, 0, 0, 0
		})
	case followRead:
		add(func(n *moment) {
			n.followed, n.has = n.upTo, n.seen
			n.doing, n.upTo, n.log0, n.seen = idle, 0, 0, 0
		})
	}
	return all
}

// walk visits every moment, and returns how many there are, and one in which nothing is left to do and the index is
// wrong.
func (p protocol) walk() (int, *moment) {
	begin := moment{first: 1}
	seen, left := map[moment]bool{begin: true}, []moment{begin}
	for len(left) > 0 {
		m := left[len(left)-1]
		left = left[:len(left)-1]
		if m.published == m.object && m.doing == idle && p.follows(m) && !m.news() && m.has != m.object {
			return len(seen), &m
		}
		for _, n := range p.next(m) {
			if !seen[n] {
				seen[n] = true
				left = append(left, n)
			}
		}
	}
	return len(seen), nil
}

func TestTheIndexConvergesInEveryInterleaving(t *testing.T) {
	n, wrong := protocol{}.walk()
	if wrong != nil {
		t.Errorf("nothing is left to do, and the index is wrong: %+v", *wrong)
	}
	t.Logf("%d states", n)
	if n < 10_000 {
		t.Errorf("only %d states", n)
	}
	for name, p := range map[string]protocol{
		"the store is read before the end of the log":              {storeFirst: true},
		"an object is read before its event":                       {readFirst: true},
		"another log is followed":                                  {anyLog: true},
		"events that have left the log are ignored":                {anyStart: true},
		"a build that continues follows the log from its end then": {newEnd: true},
	} {
		if _, wrong := p.walk(); wrong == nil {
			t.Errorf("the model does not notice: %s", name)
		}
	}
}
