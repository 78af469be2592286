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

// Checker tries the orders in which steps can follow each other in a world.
//
// Clients and handlers are processes; each driver call is a step. A state is
// what the stores hold, which events are not acknowledged, and at which step
// each process is. A process is moved by running it from its beginning with
// the answers that it was given, up to its next driver call, which is then
// made: so any state can be gone on from, without a thread that waits there.
type Checker struct {
	// Judge looks at each write that a client or a worker makes; may be nil.
	Judge func(lives Lives, e *event.Envelope) error

	world     World
	consumers []Consumer
	check     func(ctx context.Context, set *store.Set, lives Lives) error
	set       *store.Set
	memory    *Memory
	shelves   []*memoryStore

	state  *state // in which the current step is made
	run    *run   // the process that makes it; nil for whoever just looks
	begun  uint64 // the clock when the current client's act began
	judged error
}

// New makes a checker. consumers makes the workers of a set of stores; check
// judges every state in which nothing is left to do for workers.
func New(ctx context.Context, w World, consumers func(*store.Set) []Consumer,
	check func(ctx context.Context, set *store.Set, lives Lives) error,
) (*Checker, error) {
	c := &Checker{world: w, check: check, memory: NewMemory(), state: &state{lives: Lives{}}}
	set, err := Set(ctx, gates{c}, w.Mappings, func(o *store.Options) { o.Locker, o.Now = noLock{}, c.time })
	if err != nil {
		return nil, err
	}
	c.set, c.consumers = set, consumers(set)
	for name := range c.memory.stores {
		c.shelves = append(c.shelves, c.memory.stores[name])
	}
	slices.SortFunc(c.shelves, func(a, b *memoryStore) int { return strings.Compare(a.name, b.name) })
	for _, act := range w.Start {
		if err := act.do(ctx, set.Store(act.Store)); err != nil {
			return nil, err
		}
	}
	for len(c.state.mail) > 0 {
		l := c.state.mail[0]
		c.state.mail = c.state.mail[1:]
		if err := c.consumers[l.consumer].Handle(ctx, l.event); err != nil {
			return nil, err
		}
	}
	c.state.history = nil
	c.state.writers = make([]writer, len(w.Writers))
	c.keep()
	return c, nil
}

// keep notes in the state what the stores hold.
func (c *Checker) keep() {
	c.state.tables = make([]map[string]*row, len(c.shelves))
	for i, s := range c.shelves {
		c.state.tables[i] = s.rows
	}
}

// enter makes a state the current one, in a copy that may change.
func (c *Checker) enter(s *state) {
	next := *s
	next.writers = slices.Clone(s.writers)
	next.hands = slices.Clone(s.hands)
	c.state = &next
	for i, shelf := range c.shelves {
		shelf.rows = s.tables[i]
	}
}

func (c *Checker) tables() map[string]map[string]*row {
	all := map[string]map[string]*row{}
	for _, s := range c.shelves {
		all[s.name] = s.rows
	}
	return all
}

// judge checks a state in which nothing is left to do.
func (c *Checker) judge(ctx context.Context, s *state) error {
	c.enter(s)
	return c.check(ctx, c.set, s.lives)
}

// advance runs a process for some more steps.
func (c *Checker) advance(p *process, r *run, f func() error) (done bool, err error) {
	known := len(p.log)
	r.log = p.log[:known:known]
	c.run = r
	err = f()
	c.run = nil
	if c.judged != nil {
		return false, c.judged
	}
	for i := known; i < len(r.log); i++ {
		p.digest = mix(p.digest, r.log[i].digest())
	}
	p.log, p.next = r.log, r.next
	switch {
	case r.halted && err == nil:
		return false, fmt.Errorf("it reports success though the driver failed it at %v", r.next)
	case len(p.log) > 1000:
		return false, ErrEndless
	case r.halted:
		return false, nil
	}
	return true, err
}

// all is more steps than any process makes.
const all = 1 << 20

// moveWriter lets a client make its next step, or begin its act.
func (c *Checker) moveWriter(ctx context.Context, i int) ([]step, error) {
	w := &c.state.writers[i]
	act := c.world.Writers[i][w.at]
	r := &run{steps: 1}
	if !w.begun {
		w.begun, w.since = true, c.state.clock
		if c.world.Clock && !c.world.Atomic {
			r.steps = 0 // it may look at the clock long before it writes
		}
	}
	if c.world.Atomic {
		r.steps = all
	}
	c.begun = w.since
	done, err := c.advance(&w.process, r, func() error { return act.do(ctx, c.set.Store(act.Store)) })
	c.keep()
	if done {
		*w = writer{at: w.at + 1}
		if errors.Is(err, errs.NotFound) || errors.Is(err, errs.Exists) || errors.Is(err, errs.Conflict) {
			err = nil
		}
	}
	return r.done, err
}

// moveHand lets a worker make its next step.
func (c *Checker) moveHand(ctx context.Context, i int, old bool) (steps []step, done bool, err error) {
	h := &c.state.hands[i]
	r := &run{steps: 1, hand: true, old: old}
	done, err = c.advance(&h.process, r, func() error { return c.consumers[h.letter.consumer].Handle(ctx, h.letter.event) })
	c.keep()
	return r.done, done, err
}
