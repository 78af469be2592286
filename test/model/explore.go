package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Stats count what was explored.
type Stats struct {
	States      int // distinct ones
	Transitions int
	Quiescent   int  // states, or with Simulate visits, in which the invariant was checked
	Complete    bool // every reachable state was visited
}

func (s Stats) String() string {
	return fmt.Sprintf("%d states, %d transitions, %d quiescent states checked, complete: %v", s.States, s.Transitions,
		s.Quiescent, s.Complete)
}

// ErrNoTermination is what a Violation wraps when a process does not terminate.
var ErrNoTermination = errors.New("a process does not terminate")

// Violation is a schedule that leads to an error.
type Violation struct {
	Err   error
	Trace []string // the transitions, from the initial state
}

func (v *Violation) Error() string {
	return fmt.Sprintf("%v\nafter:\n  %s", v.Err, strings.Join(v.Trace, "\n  "))
}

func (v *Violation) Unwrap() error { return v.Err }

type kind uint8

const (
	clientStep   kind = iota
	deliver           // a worker receives an event and makes its first step
	handlerStep       // a worker makes a step
	deliverStale      // the same two, with a stale index
	handlerStepStale
	crash        // a worker crashes
	crashClient  // a client crashes
	syncWrite    // a write becomes durable
	powerFailure // what is not durable is lost, and all workers crash

	roundStep     // a round in another process makes a step
	giveUp        // the worker that waits for it does so no more
	loseRound     // the request, the reply or the process is lost, and the worker gives up
	abandonedStep // a round that nobody waits for any more makes a step
	loseAbandoned // it crashes, or its request was lost
)

// transition leads from a state to another. index is the client, handler or
// delivery that it is about.
type transition struct {
	kind  kind
	index int
}

// label describes a transition in a trace.
type label struct {
	role  string
	index int
	with  fmt.Stringer
	steps []step
	note  string
}

func (l label) unacknowledged() label {
	l.note = "completes and crashes before the acknowledgement"
	return l
}

func (l label) String() string {
	return fmt.Sprintf("%s %d, %v: %v %s", l.role, l.index+1, l.with, l.steps, l.note)
}

// transitions returns those that are possible in a state.
func (c *Checker) transitions(s *state) []transition {
	all := make([]transition, 0, len(s.clients)+2*len(s.handlers)+len(s.unacked))
	for i := range s.clients {
		if w := &s.clients[i]; w.at < len(c.scenario.Clients[i]) && c.ready(s, &w.process) && c.mayBegin(s, i) {
			all = append(all, transition{clientStep, i})
		}
	}
	for i := range s.clients {
		if c.scenario.CrashClients && s.clients[i].begun {
			all = append(all, transition{crashClient, i})
		}
	}
	for i := range s.handlers {
		if h := &s.handlers[i]; c.ready(s, &h.process) && !h.waitsForRound() {
			all = append(all, transition{handlerStep, i})
		}
		if c.scenario.LaggingIndexes && s.handlers[i].next.step.op == "query" {
			all = append(all, transition{handlerStepStale, i})
		}
		if c.mayCrash(s) {
			all = append(all, transition{crash, i})
		}
	}
	if len(s.handlers) < c.scenario.MaxInFlight {
		for i := range s.unacked {
			if c.scenario.OneHandler && s.holders(s.unacked[i]) > 0 {
				continue
			}
			all = append(all, transition{deliver, i})
			if c.scenario.LaggingIndexes {
				all = append(all, transition{deliverStale, i})
			}
		}
	}
	return append(append(all, c.askTransitions(s)...), c.volatileTransitions(s)...)
}

// mayBegin reports whether other clients have ended what is before the next operation of a client.
func (c *Checker) mayBegin(s *state, i int) bool {
	for other, operations := range c.scenario.Clients[i][s.clients[i].at].after {
		if s.clients[other].at < operations {
			return false
		}
	}
	return true
}

// mayCrash reports whether a handler can crash.
func (c *Checker) mayCrash(s *state) bool {
	return c.scenario.Crash && (c.scenario.MaxCrashes == 0 || s.crashes < c.scenario.MaxCrashes)
}

// countCrash counts crashes only where they are limited: the number makes states differ.
func (c *Checker) countCrash(s *state) {
	if c.scenario.MaxCrashes > 0 {
		s.crashes++
	}
}

// ready reports whether a process can make its next step.
func (c *Checker) ready(s *state, p *process) bool {
	return p.waits == 0 && (p.next.do == nil || !c.blocked(s, p.next))
}

// take makes a transition from a state. When a handler completes, unacked is the
// state in which it crashed before the acknowledgement.
func (c *Checker) take(ctx context.Context, s *state, t transition) (next, unacked *state, did label, err error) {
	c.enter(s)
	c.taking = t.kind
	i := t.index
	switch t.kind {
	case clientStep:
		op := c.scenario.Clients[i][s.clients[i].at]
		steps, err := c.stepClient(ctx, i)
		return c.state, nil, label{"client", i, op, steps, ""}, cmp.Or(err, c.checkApplied(ctx))
	case crashClient:
		op := c.scenario.Clients[i][s.clients[i].at]
		c.state.clients[i] = client{at: s.clients[i].at + 1}
		return c.state, nil, label{"client", i, op, nil, "crashes"}, nil
	case crash:
		d := s.handlers[i].delivery
		c.state.loseReport(&s.handlers[i], c.scenario.Fault.LostReports)
		c.state.abandon(d, s.handlers[i].asked...)
		c.state.handlers = slices.Delete(c.state.handlers, i, i+1)
		c.countCrash(c.state)
		if !c.scenario.Fault.AckByOther {
			c.state.redeliver(d)
		}
		return c.state, nil, label{"worker", i, d, nil, "crashes"}, nil
	case syncWrite:
		return c.state, nil, c.sync(i), nil
	case powerFailure:
		return c.state, nil, c.failPower(), nil
	case roundStep, abandonedStep, loseAbandoned:
		did, err = c.takeAsk(ctx, t)
		return c.state, nil, did, err
	case deliver, deliverStale:
		c.state.handlers = append(c.state.handlers, handler{delivery: s.unacked[i]})
		i = len(c.state.handlers) - 1
	}
	d := c.state.handlers[i].delivery
	stale := t.kind == handlerStepStale || t.kind == deliverStale
	steps, done, err := c.stepHandler(ctx, i, stale)
	did = label{"worker", i, d, steps, ""}
	switch {
	case stale:
		did.note = "with a stale index"
	case t.kind == giveUp, t.kind == loseRound:
		did.note = "gives up"
	}
	if !done || err != nil {
		return c.state, nil, did, cmp.Or(err, c.checkApplied(ctx))
	}
	c.state.report(&c.state.handlers[i])
	c.wroteNow = true
	if err := c.checkApplied(ctx); err != nil {
		return c.state, nil, did, err
	}
	next = c.state
	next.abandon(d, c.state.handlers[i].asked...)
	next.handlers = slices.Delete(next.handlers, i, i+1)
	if c.mayCrash(next) {
		crashed := *next
		c.countCrash(&crashed)
		unacked = &crashed
	}
	next.unacked = slices.DeleteFunc(slices.Clone(next.unacked), func(o *delivery) bool { return o == d })
	did.note = "completes"
	return next, unacked, did, nil
}

// frame is a state on the path to the current one.
type frame struct {
	state       *state
	did         label
	transitions []transition // that have not been taken yet
	more        []frame      // other states that the last transition led to
}

// Explore visits all states, or as many as the limit, depth first. The error is
// a *Violation, or the context's.
func (c *Checker) Explore(ctx context.Context, limit int) (Stats, error) {
	visited := map[uint64]struct{}{}
	var stats Stats
	var path []frame
	enter := func(f frame) error {
		id := f.state.fingerprint(c.scenario.Clock)
		if _, known := visited[id]; known {
			return nil
		}
		visited[id] = struct{}{}
		f.transitions = c.transitions(f.state)
		path = append(path, f)
		if !f.state.quiescent() {
			return nil
		}
		stats.Quiescent++
		return c.checkQuiescent(ctx, f.state)
	}
	err := enter(frame{state: c.state})
	for err == nil && len(path) > 0 && len(visited) < limit {
		top := &path[len(path)-1]
		if n := len(top.more); n > 0 {
			f := top.more[n-1]
			top.more = top.more[:n-1]
			err = enter(f)
			continue
		}
		if len(top.transitions) == 0 {
			path[len(path)-1] = frame{}
			path = path[:len(path)-1]
			continue
		}
		t := top.transitions[0]
		top.transitions = top.transitions[1:]
		next, unacked, did, failed := c.take(ctx, top.state, t)
		stats.Transitions++
		if failed != nil {
			path = append(path, frame{did: did})
			err = failed
			break
		}
		if unacked != nil {
			top.more = append(top.more, frame{state: unacked, did: did.unacknowledged()})
		}
		err = enter(frame{state: next, did: did})
	}
	stats.States, stats.Complete = len(visited), err == nil && len(path) == 0
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

// Limits of one simulation.
const (
	maxCrashes     = 5
	maxTransitions = 5000
)

// Simulate takes random transitions from the initial state until none is
// possible. The seed determines them. It fails with ErrNoTermination if that
// takes too many.
func (c *Checker) Simulate(ctx context.Context, seed uint64) (Stats, error) {
	initial := c.state
	defer func() { c.enter(initial) }()
	random := rand.New(rand.NewPCG(seed, 0))
	path := []frame{{state: initial}}
	var stats Stats
	crashes := 0
	for s := initial; ; {
		if s.quiescent() {
			stats.Quiescent++
			if err := c.checkQuiescent(ctx, s); err != nil {
				return stats, violation(err, path)
			}
		}
		transitions := c.transitions(s)
		if len(transitions) == 0 {
			stats.States = stats.Transitions
			return stats, nil
		}
		t := transitions[random.IntN(len(transitions))]
		if t.kind == crash || t.kind == crashClient || t.kind == powerFailure {
			if crashes >= maxCrashes || random.IntN(4) > 0 {
				continue
			}
			crashes++
		}
		next, unacked, did, err := c.take(ctx, s, t)
		stats.Transitions++
		if unacked != nil && crashes < maxCrashes && random.IntN(8) == 0 {
			next, did = unacked, did.unacknowledged()
			crashes++
		}
		path = append(path, frame{state: next, did: did})
		if err == nil && stats.Transitions > maxTransitions {
			err = ErrNoTermination
		}
		if err != nil {
			return stats, violation(err, path)
		}
		s = next
	}
}
