package model

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Stats say what was tried.
type Stats struct {
	States   int  // different ones
	Moves    int  // from one state to the next
	Quiet    int  // states, or with Walk ends, in which arrays had to equal objects
	Complete bool // every state that the world can come to was seen
}

func (s Stats) String() string {
	return fmt.Sprintf("%d states, %d moves, %d quiet states judged, complete: %v", s.States, s.Moves, s.Quiet, s.Complete)
}

// ErrEndless is what a Violation wraps when a process makes step after step.
var ErrEndless = errors.New("it does not come to an end")

// Violation is a way to a state that must not be.
type Violation struct {
	Err   error
	Trace []string // the moves, from the beginning
}

func (v *Violation) Error() string {
	return fmt.Sprintf("%v\nafter:\n  %s", v.Err, strings.Join(v.Trace, "\n  "))
}

func (v *Violation) Unwrap() error { return v.Err }

type kind uint8

const (
	write   kind = iota // a client makes a step
	deliver             // a worker takes an event and makes its first step
	work                // a worker makes a step
	deliverOld
	workOld // the same, with an index that lags
	vanish  // a worker vanishes
)

// label says what a move was.
type label struct {
	role  string
	who   int
	with  fmt.Stringer
	steps []step
	note  string
}

func (l label) unacknowledged() label {
	l.note = "done, and not acknowledged"
	return l
}

func (l label) String() string {
	return fmt.Sprintf("%s %d, %v: %v %s", l.role, l.who+1, l.with, l.steps, l.note)
}

// move is one way to go on from a state.
type move struct {
	kind kind
	who  int
}

// moves lists the ways to go on.
func (c *Checker) moves(s *state) []move {
	var all []move
	for i := range s.writers {
		if s.writers[i].at < len(c.world.Writers[i]) {
			all = append(all, move{write, i})
		}
	}
	for i := range s.hands {
		all = append(all, move{work, i})
		if c.world.Lag && s.hands[i].next.op == "query" {
			all = append(all, move{workOld, i})
		}
		if c.world.Crash {
			all = append(all, move{vanish, i})
		}
	}
	if len(s.hands) < c.world.Hands {
		for i := range s.mail {
			all = append(all, move{deliver, i})
			if c.world.Lag {
				all = append(all, move{deliverOld, i})
			}
		}
	}
	return all
}

// make goes on from a state by a move. lost is, when a handler came to its end,
// the state in which it did not acknowledge.
func (c *Checker) make(ctx context.Context, s *state, m move) (next, lost *state, did label, err error) {
	c.enter(s)
	who := m.who
	switch m.kind {
	case write:
		act := c.world.Writers[m.who][s.writers[m.who].at]
		steps, err := c.moveWriter(ctx, m.who)
		return c.state, nil, label{"client", m.who, act, steps, ""}, err
	case vanish:
		l := s.hands[m.who].letter
		did = label{"worker", m.who, l, nil, "it vanishes"}
		c.state.hands = slices.Delete(c.state.hands, m.who, m.who+1)
		if !c.world.Fault.Shadow {
			c.state.returned(l)
		}
		return c.state, nil, did, nil
	case deliver, deliverOld:
		c.state.hands = append(c.state.hands, hand{letter: s.mail[m.who]})
		who = len(c.state.hands) - 1
	}
	l := c.state.hands[who].letter
	steps, done, err := c.moveHand(ctx, who, m.kind == workOld || m.kind == deliverOld)
	did = label{"worker", who, l, steps, ""}
	if m.kind == workOld || m.kind == deliverOld {
		did.note = "with an old index"
	}
	if !done || err != nil {
		return c.state, nil, did, err
	}
	next = c.state
	next.hands = slices.Delete(next.hands, who, who+1)
	unacknowledged := *next
	next.mail = slices.DeleteFunc(slices.Clone(next.mail), func(o *letter) bool { return o == l })
	if c.world.Crash {
		lost = &unacknowledged
	}
	did.note = "done"
	return next, lost, did, nil
}

// frame is a state on the way to the current one.
type frame struct {
	state *state
	did   label
	moves []move
	more  []frame // states that the last move led to besides
}

// Explore goes through all states, or through limit of them. The error is a
// *Violation, or the context's.
func (c *Checker) Explore(ctx context.Context, limit int) (Stats, error) {
	seen := map[uint64]struct{}{}
	var stats Stats
	var path []frame
	enter := func(f frame) error {
		d := f.state.digest(c.world.Clock)
		if _, known := seen[d]; known {
			return nil
		}
		seen[d] = struct{}{}
		f.moves = c.moves(f.state)
		path = append(path, f)
		if !f.state.quiet() {
			return nil
		}
		stats.Quiet++
		return c.judge(ctx, f.state)
	}
	err := enter(frame{state: c.state})
	for err == nil && len(path) > 0 && len(seen) < limit {
		top := &path[len(path)-1]
		if n := len(top.more); n > 0 {
			f := top.more[n-1]
			top.more = top.more[:n-1]
			err = enter(f)
			continue
		}
		if len(top.moves) == 0 {
			path = path[:len(path)-1]
			continue
		}
		m := top.moves[0]
		top.moves = top.moves[1:]
		next, lost, did, failed := c.make(ctx, top.state, m)
		stats.Moves++
		if failed != nil {
			path = append(path, frame{did: did})
			err = failed
			break
		}
		if lost != nil {
			top.more = append(top.more, frame{state: lost, did: did.unacknowledged()})
		}
		err = enter(frame{state: next, did: did})
	}
	stats.States, stats.Complete = len(seen), err == nil && len(path) == 0
	if err != nil {
		err = violation(err, path)
	}
	return stats, err
}

func violation(err error, path []frame) error {
	v := &Violation{Err: err}
	for _, f := range path[1:] {
		v.Trace = append(v.Trace, f.did.String())
	}
	return v
}

// Walk goes one way from the beginning until nothing can happen any more, as
// the seed decides. It fails if that takes too long.
func (c *Checker) Walk(ctx context.Context, seed uint64) (Stats, error) {
	begin := c.state
	defer func() { c.enter(begin) }()
	random := rand.New(rand.NewPCG(seed, 0))
	path := []frame{{state: begin}}
	var stats Stats
	crashes := 0
	for s := begin; ; {
		if s.quiet() {
			stats.Quiet++
			if err := c.judge(ctx, s); err != nil {
				return stats, violation(err, path)
			}
		}
		moves := c.moves(s)
		if len(moves) == 0 {
			stats.States = stats.Moves
			return stats, nil
		}
		m := moves[random.IntN(len(moves))]
		if m.kind == vanish {
			if crashes >= 5 || random.IntN(4) > 0 {
				continue
			}
			crashes++
		}
		next, lost, did, err := c.make(ctx, s, m)
		stats.Moves++
		if lost != nil && crashes < 5 && random.IntN(8) == 0 {
			next, did = lost, did.unacknowledged()
			crashes++
		}
		path = append(path, frame{state: next, did: did})
		if err == nil && stats.Moves > 5000 {
			err = ErrEndless
		}
		if err != nil {
			return stats, violation(err, path)
		}
		s = next
	}
}
