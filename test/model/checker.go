package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

// Checker explores the interleavings of the steps of a scenario. It is not safe
// for concurrent use.
//
// Operations of clients and handlers of events are processes; each driver call
// is a step. A state is the contents of the stores, the unacknowledged events,
// and the step that each process is at. A process is deterministic: the answers
// to its driver calls determine its next call. So it is continued from any state
// by running it from its start with the answers it got before, up to the next
// call, which is then made; no goroutine is kept for it. What a process does
// between two calls (a segment) is remembered, so that each is run once.
type Checker struct {
	// OnWrite checks each write of a client or worker; may be nil.
	OnWrite func(histories Histories, e *event.Envelope) error

	// OnApplied checks, for each write whose wait has ended, every state that a
	// write leads to since; may be nil.
	OnApplied func(ctx context.Context, set *store.Set, a *Applied) error

	scenario  Scenario
	consumers []Consumer
	invariant func(ctx context.Context, set *store.Set, histories Histories) error
	set       *store.Set
	memory    *Memory
	stores    []*memoryTable // by name
	segments  map[uint64]segment

	state    *state   // the one in which the current step is made
	run      *run     // the process that makes it; nil for a check
	handler  *handler // the handler that makes it; nil for a client
	taking   kind     // the transition that it is a part of
	wroteNow bool     // it is a write
	began    uint64   // the clock when the current client's operation began
	ahead    uint64   // of the clock, for the current client
	wrote    uint64   // the volatile write of the current step; 0 for none
	writeErr error    // of OnWrite
}

// maxSegments bounds the memory of a long simulation.
const maxSegments = 1 << 16

// New returns a checker. consumers makes the workers of a set of stores;
// invariant checks each state in which workers have nothing to do.
func New(ctx context.Context, s Scenario, consumers func(*store.Set) []Consumer,
	invariant func(ctx context.Context, set *store.Set, histories Histories) error,
) (*Checker, error) {
	c := &Checker{
		scenario: s, invariant: invariant, memory: NewMemory(),
		segments: map[uint64]segment{}, state: &state{histories: Histories{}},
	}
	if s.Chunks {
		c.memory.least = 0
	}
	set, err := OpenSet(ctx, stepBackend{c}, s.Mappings, func(o *store.Options) {
		o.Locker, o.Now = NoLock{}, c.time
		if s.Options != nil {
			s.Options(o)
		}
	})
	if err != nil {
		return nil, err
	}
	c.set, c.consumers = set, consumers(set)
	for i := range c.consumers {
		if over := c.consumers[i].Over; over != nil {
			over.c, over.consumer = c, i
		}
	}
	for name := range c.memory.tables {
		c.stores = append(c.stores, c.memory.tables[name])
	}
	slices.SortFunc(c.stores, func(a, b *memoryTable) int { return strings.Compare(a.name, b.name) })
	for _, op := range s.Setup {
		if err := op.run(ctx, set.Store(op.Store)); err != nil {
			return nil, err
		}
	}
	for len(c.state.unacked) > 0 {
		d := c.state.unacked[0]
		c.state.unacked = c.state.unacked[1:]
		if err := c.consumers[d.consumer].Handle(ctx, d.event); err != nil {
			return nil, err
		}
	}
	c.state.snapshots = nil
	c.state.clients = make([]client, len(s.Clients))
	c.saveTables()
	return c, nil
}

// saveTables copies the contents of the stores to the state.
func (c *Checker) saveTables() { c.state.tables = c.tables() }

func (c *Checker) tables() []map[string]*row {
	all := make([]map[string]*row, len(c.stores))
	for i, s := range c.stores {
		all[i] = s.rows
	}
	return all
}

// enter makes a copy of a state the current one.
func (c *Checker) enter(s *state) {
	next := *s
	next.clients = slices.Clone(s.clients)
	next.handlers = append(make([]handler, 0, len(s.handlers)+1), s.handlers...)
	c.state = &next
	for i := range c.stores {
		c.stores[i].rows = s.tables[i]
	}
}

func (c *Checker) snapshot() map[string]map[string]*row {
	all := map[string]map[string]*row{}
	for _, s := range c.stores {
		all[s.name] = s.rows
	}
	return all
}

// checkQuiescent checks the invariant in a state.
func (c *Checker) checkQuiescent(ctx context.Context, s *state) error {
	c.enter(s)
	return c.invariant(ctx, c.set, s.histories)
}

// stepClient starts a client's operation or makes its next step.
func (c *Checker) stepClient(ctx context.Context, i int) (steps []step, err error) {
	w := &c.state.clients[i]
	op := c.scenario.Clients[i][w.at]
	code := program{mix(uint64(i), uint64(w.at)), false, func() error { return op.run(ctx, c.set.Store(op.Store)) }}
	done := false
	c.ahead = op.ahead
	defer func() { c.ahead = 0 }()
	if !w.begun {
		w.begun, w.since = true, c.state.clock
		done, err = c.start(&w.process, code)
		if c.scenario.Clock && !c.scenario.AtomicClients && !done {
			return nil, err // it may read the clock long before it writes
		}
	}
	c.began = w.since
	for first := true; !done && err == nil && w.waits == 0 && !c.blocked(c.state, w.next) &&
		(first || c.scenario.AtomicClients); first = false {
		steps = append(steps, w.next.step)
		done, err = c.step(&w.process, code, false)
	}
	c.saveTables()
	if done {
		*w = client{at: w.at + 1, process: process{waits: w.waits}}
		if errors.Is(err, errs.NotFound) || errors.Is(err, errs.Exists) || errors.Is(err, errs.Taken) ||
			errors.Is(err, errs.Conflict) {
			err = nil
		}
	}
	return steps, err
}

// stepHandler starts a handler and makes its first step, or makes its next one.
// stale makes a query with the oldest index that it may get.
func (c *Checker) stepHandler(ctx context.Context, i int, stale bool) (steps []step, done bool, err error) {
	h := &c.state.handlers[i]
	ctx = context.WithValue(ctx, checkerKey{}, c)
	code := program{h.delivery.hash, true,
		func() error { return c.consumers[h.delivery.consumer].Handle(ctx, h.delivery.event) }}
	if h.next.do == nil {
		if done, err = c.start(&h.process, code); done || err != nil {
			return nil, done, err
		}
	}
	if c.blocked(c.state, h.next) {
		return nil, false, nil
	}
	steps = []step{h.next.step}
	c.handler = h
	done, err = c.step(&h.process, code, stale)
	c.handler = nil
	c.saveTables()
	if done && h.waits > 0 {
		err = fmt.Errorf("model: a handler ends with the write %v", steps)
	}
	return steps, done, err
}

// program is the code of a process. Processes of the same identity that got the
// same answers are in the same state.
type program struct {
	identity uint64
	handler  bool // a handler, not a client
	code     func() error
}

// start runs a process to its first driver call.
func (c *Checker) start(p *process, code program) (done bool, err error) {
	return c.advance(p, code)
}

// step makes a process's next driver call and runs it to the one after.
func (c *Checker) step(p *process, code program, stale bool) (done bool, err error) {
	c.run, c.wrote = &run{log: p.log, stale: stale}, 0
	a := p.next.do()
	c.run, p.waits = nil, c.wrote
	if c.writeErr != nil {
		return false, c.writeErr
	}
	a.step = p.next.step
	p.log = append(p.log[:len(p.log):len(p.log)], &a)
	p.hash = mix(p.hash, a.hash())
	return c.advance(p, code)
}

// segment is what a process does from one driver call to the next: it reads the
// clock, and asks for the call, or returns.
type segment struct {
	reads []*answer // of the clock
	next  call
	done  bool
	err   error
}

// advance runs a process to its next driver call.
func (c *Checker) advance(p *process, code program) (done bool, err error) {
	key := mix(mix(mix(code.identity, p.hash), c.state.clock), uint64(len(c.state.snapshots)))
	if code.handler {
		key++
	}
	s, known := c.segments[key]
	if !known {
		s = c.runSegment(p, code)
		if len(c.segments) >= maxSegments {
			clear(c.segments)
		}
		c.segments[key] = s
	}
	for i := range s.reads {
		p.hash = mix(p.hash, s.reads[i].hash())
	}
	if len(s.reads) > 0 {
		p.log = append(p.log[:len(p.log):len(p.log)], s.reads...)
	}
	p.next = s.next
	if len(p.log) > 1000 {
		return false, ErrNoTermination
	}
	return s.done, s.err
}

func (c *Checker) runSegment(p *process, code program) segment {
	r := &run{log: p.log[:len(p.log):len(p.log)], handler: code.handler}
	c.run = r
	err := code.code()
	c.run = nil
	s := segment{reads: r.log[len(p.log):], next: r.next}
	switch {
	case r.halted && err == nil && code.handler: // a client may end with a call whose error it leaves alone
		s.err = fmt.Errorf("it returns success although the driver returned an error for %v", r.next.step)
	case !r.halted:
		s.done, s.err = true, err
	}
	return s
}
