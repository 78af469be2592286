package model

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store/driver"
)

// gate stands between stores and the memory: each driver call is a step.
type gate struct {
	*memoryStore
	c *Checker
}

// laggingGate has indexes that lag.
type laggingGate struct{ gate }

var (
	_ driver.Store       = gate{}
	_ driver.IndexLagger = laggingGate{}
)

// gates opens stores behind gates.
type gates struct{ c *Checker }

func (g gates) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	if _, err := g.c.memory.Open(ctx, spec); err != nil {
		return nil, err
	}
	s := gate{g.c.memory.stores[spec.Name], g.c}
	if g.c.world.Lag {
		return laggingGate{s}, nil
	}
	return s, nil
}

func (g gates) Ping(context.Context) error { return nil }
func (g gates) Close() error               { return nil }

// step is a driver call, for who reads a trace.
type step struct{ op, store, uuid string }

func (s step) String() string { return s.op + " " + s.store + "/" + s.uuid }

// answer is what a driver call gave.
type answer struct {
	record driver.Record
	found  bool
	page   driver.Page
	err    error
	now    uint64 // of a look at the clock
	waited uint64 // of a wait: how many writes there had been

	step step // what was asked
}

func (a *answer) digest() uint64 {
	d := mix(uint64(len(a.page.Records)), a.now)
	if a.found {
		d = mix(d, digest(a.record))
	}
	for _, r := range a.page.Records {
		d = mix(d, digest(r))
	}
	if a.err != nil {
		d = mix(d, uint64(errs.KindOf(a.err))+1)
	}
	return d
}

// errHalted ends the run of a process that has no step left for now. The
// process is run again from its beginning, with the answers it got, when it may
// make its next one.
var errHalted = errs.New(errs.Unavailable, "halted")

// run is one execution of a process.
type run struct {
	log    []answer // what the process has been answered so far
	at     int
	steps  int // how many more it may make
	halted bool
	next   step // at which it halted
	done   []step
	old    bool // the step it makes looks at an index as old as may be
	hand   bool // a worker's, not a client's

	wrote  string // the store last written, while a fault hides what others did since
	before map[string]answer
}

// call makes a step, or gives the answer that it had in an earlier execution.
func (c *Checker) call(s step, do func() answer) answer {
	r := c.run
	if r == nil {
		return do()
	}
	if c.world.Fault.NoRecheck && r.hand {
		if was, ok := r.blind(s); ok {
			return was
		}
	}
	var a answer
	switch {
	case r.at < len(r.log):
		if a = r.log[r.at]; a.step != s {
			panic(fmt.Sprintf("model: a process asked %v, and in the same place before %v: its order of steps must not be by chance", s, a.step))
		}
	case r.halted || r.steps == 0:
		if !r.halted {
			r.halted, r.next = true, s
		}
		return answer{err: errHalted}
	default:
		r.steps--
		a = do()
		a.step = s
		r.log = append(r.log, a)
		r.done = append(r.done, s)
	}
	r.at++
	if c.world.Fault.NoRecheck {
		r.see(s, a)
	}
	return a
}

// blind answers a look at an object after a write with what was seen before.
func (r *run) blind(s step) (answer, bool) {
	if s.op != "get" || r.wrote == "" {
		return answer{}, false
	}
	if s.store == r.wrote {
		r.wrote = "" // a target again: the next pass
		return answer{}, false
	}
	was, ok := r.before[s.uuid]
	return was, ok
}

func (r *run) see(s step, a answer) {
	switch {
	case s.op == "put" && a.err == nil:
		r.wrote = s.store
	case s.op == "get":
		if r.before == nil {
			r.before = map[string]answer{}
		}
		r.before[s.uuid] = a
	}
}

func (g gate) Get(ctx context.Context, uuid string) (driver.Record, bool, error) {
	a := g.c.call(step{"get", g.name, uuid}, func() (a answer) {
		a.record, a.found, a.err = g.memoryStore.Get(ctx, uuid)
		return a
	})
	return a.record, a.found, a.err
}

func (g gate) Put(ctx context.Context, w driver.Write) error {
	return g.c.call(step{"put", g.name, w.UUID}, func() answer { return answer{err: g.c.put(ctx, g.memoryStore, w)} }).err
}

func (g gate) Query(_ context.Context, q driver.Query) (driver.Page, error) {
	a := g.c.call(step{"query", g.name, string(bytes.Join(q.Equal, nil))}, func() (a answer) {
		rows := g.rows
		if r := g.c.run; r != nil && r.old {
			rows = g.c.oldRows(g.name, r)
		}
		a.page, a.err = search(rows, q)
		return a
	})
	return a.page, a.err
}

// IndexLag is a look at the clock: what was written before it is found by
// queries after it. The wait itself takes no time in the model.
func (g laggingGate) IndexLag() time.Duration {
	g.c.look(func() answer { return answer{waited: uint64(len(g.c.state.history))} })
	return time.Nanosecond
}

// look gives a process a value that it sees without a step, and the same value
// when it is run again.
func (c *Checker) look(value func() answer) answer {
	r := c.run
	switch {
	case r == nil:
		return value()
	case r.at < len(r.log):
		r.at++
		return r.log[r.at-1]
	case r.halted:
		return answer{}
	}
	r.at++
	r.log = append(r.log, value())
	return r.log[r.at-1]
}

func (c *Checker) time() time.Time {
	return timeAt(c.look(func() answer { return answer{now: c.state.clock} }).now)
}

// oldRows is a store as the process may still see it in an index: as it was
// when the process last waited, or as it was at first.
func (c *Checker) oldRows(name string, r *run) map[string]*row {
	waited := uint64(0)
	for _, a := range r.log {
		waited = max(waited, a.waited)
	}
	if int(waited) >= len(c.state.history) {
		return c.memory.stores[name].rows
	}
	return c.state.history[waited][name]
}

// put writes, and posts the event to the consumers that want it.
func (c *Checker) put(ctx context.Context, s *memoryStore, w driver.Write) error {
	if c.world.Fault.Tamper != nil {
		c.world.Fault.Tamper(&w)
	}
	if c.world.Lag {
		c.state.history = append(c.state.history[:len(c.state.history):len(c.state.history)], c.tables())
	}
	s.rows = maps.Clone(s.rows)
	if err := s.Put(ctx, w); err != nil {
		return err
	}
	if c.world.Clock {
		c.state.clock++
	}
	if c.world.Fault.Forget && w.Body == nil {
		delete(s.rows, w.UUID)
	}
	e := new(event.Envelope)
	if err := json.Unmarshal(w.Event.Payload, e); err != nil {
		return err
	}
	c.state.remember(c.world.Mappings, e, c.begun)
	if c.Judge != nil && c.judged == nil {
		c.judged = c.Judge(c.state.lives, e)
	}
	c.post(e, w.Event.Subject)
	return nil
}

// post gives an event to the consumers that want it.
func (c *Checker) post(e *event.Envelope, subject string) {
	if e.Origin == event.OriginMapping || c.world.Fault.Lose != nil && c.world.Fault.Lose(e) {
		return // a worker acknowledges the events of its own writes unseen
	}
	for i := range c.consumers {
		if c.consumers[i].wants(subject) {
			c.state.mail = append(c.state.mail[:len(c.state.mail):len(c.state.mail)], newLetter(i, c.consumers[i].Name, e))
		}
	}
}

func matches(filter, subject string) bool {
	rest := strings.TrimPrefix(subject, event.LogPrefix)
	_, rest, _ = strings.Cut(rest, ".")
	return event.LogPrefix+"*."+rest[:strings.LastIndexByte(rest, '.')]+".*" == filter
}
