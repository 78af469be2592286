package model

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
)

// stepStore is a store of the memory backend whose driver calls are steps.
type stepStore struct {
	*memoryStore
	c *Checker
}

// laggingStore has indexes that lag.
type laggingStore struct{ stepStore }

var (
	_ driver.Store       = stepStore{}
	_ driver.IndexLagger = laggingStore{}
)

// stepBackend opens a checker's stores.
type stepBackend struct{ c *Checker }

func (b stepBackend) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	opened, err := b.c.memory.open(ctx, spec)
	if err != nil {
		return nil, err
	}
	s := stepStore{opened, b.c}
	if b.c.scenario.LaggingIndexes {
		return laggingStore{s}, nil
	}
	return s, nil
}

func (b stepBackend) Stores(ctx context.Context) ([]string, error) { return b.c.memory.Stores(ctx) }

func (b stepBackend) Ping(context.Context) error { return nil }
func (b stepBackend) Close() error               { return nil }

// step describes a driver call in a trace.
type step struct{ op, store, uuid string }

func (s step) String() string { return s.op + " " + s.store + "/" + s.uuid }

// call is a driver call that can be made in any state.
type call struct {
	step step
	do   func() answer
}

// answer is the result of a driver call, or of reading the clock.
type answer struct {
	record driver.Record
	found  bool
	page   driver.Page
	err    error

	entries *driver.Entries
	now     uint64 // of reading the clock
	waited  uint64 // of waiting for the index: how many writes there had been

	step step
}

func (a *answer) hash() uint64 {
	h := mix(mix(uint64(len(a.page.Records)), a.now), a.waited)
	if a.found {
		h = mix(h, hashRecord(a.record))
	}
	if a.entries != nil {
		h = mix(h, hashEntries(a.entries))
	}
	for _, r := range a.page.Records {
		h = mix(h, hashRecord(r))
	}
	if a.err != nil {
		h = mix(h, uint64(errs.KindOf(a.err))+1)
	}
	return h
}

// errHalted ends the execution of a process that has reached its next driver
// call.
var errHalted = errs.New(errs.Unavailable, "halted")

// run is one execution of a process.
type run struct {
	log     []*answer // the answers it gets
	at      int
	halted  bool
	next    call // at which it halted
	handler bool // of a handler, not a client
	stale   bool // queries return the oldest index that they may

	// With Fault.NoRecheck:
	wrote  string // the store last written
	before map[string]answer
}

// call returns the answer that a process got in an earlier execution, or halts
// the process.
func (c *Checker) call(s step, do func() answer) answer {
	r := c.run
	if r == nil {
		return do()
	}
	if c.scenario.Fault.NoRecheck && r.handler {
		if was, ok := r.repeat(s); ok {
			return was
		}
	}
	if r.at == len(r.log) || r.halted {
		if !r.halted {
			r.halted, r.next = true, call{s, do}
		}
		return answer{err: errHalted}
	}
	a := r.log[r.at]
	if a.step != s {
		panic(fmt.Sprintf("model: a process called %v where it called %v before: it is not deterministic", s, a.step))
	}
	r.at++
	if c.scenario.Fault.NoRecheck {
		r.remember(s, *a)
	}
	return *a
}

// repeat returns for a read after a write what was read before it.
func (r *run) repeat(s step) (answer, bool) {
	if s.op != "get" || r.wrote == "" {
		return answer{}, false
	}
	if s.store == r.wrote {
		r.wrote = "" // a target again: the next round
		return answer{}, false
	}
	was, ok := r.before[s.uuid]
	return was, ok
}

func (r *run) remember(s step, a answer) {
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

func (s stepStore) Get(ctx context.Context, uuid string) (driver.Record, bool, error) {
	ctx = context.WithoutCancel(ctx) // the process has returned when the call is made
	a := s.c.call(step{"get", s.name, uuid}, func() (a answer) {
		a.record, a.found, a.err = s.memoryStore.Get(ctx, uuid)
		return a
	})
	return a.record, a.found, a.err
}

func (s stepStore) Query(_ context.Context, q driver.Query) (driver.Page, error) {
	a := s.c.call(step{"query", s.name, string(bytes.Join(q.Equal, nil))}, func() (a answer) {
		rows := s.rows
		if r := s.c.run; r != nil && r.stale {
			rows = s.c.staleRows(s.name, r)
		}
		a.page, a.err = search(rows, q)
		return a
	})
	return a.page, a.err
}

func (s stepStore) Scan(ctx context.Context, after []byte, limit int) (driver.Page, error) {
	ctx = context.WithoutCancel(ctx)
	a := s.c.call(step{"scan", s.name, string(after)}, func() (a answer) {
		a.page, a.err = s.memoryStore.Scan(ctx, after, limit)
		return a
	})
	return a.page, a.err
}

// IndexLag reads the clock: later queries return everything written before now.
// The wait itself takes no time in the model.
func (s laggingStore) IndexLag() time.Duration {
	s.c.read(func() answer { return answer{waited: uint64(len(s.c.state.snapshots))} })
	return time.Nanosecond
}

// read returns a value that a process reads without a step, and the same value
// in later executions.
func (c *Checker) read(value func() answer) answer {
	r := c.run
	switch {
	case r == nil:
		return value()
	case r.at < len(r.log):
		r.at++
		return *r.log[r.at-1]
	case r.halted:
		return answer{}
	}
	r.at++
	a := value()
	r.log = append(r.log, &a)
	return a
}

func (c *Checker) time() time.Time {
	return timeAt(c.read(func() answer { return answer{now: c.state.clock} }).now).Add(time.Duration(c.ahead) * time.Microsecond) //nolint:gosec // small
}

// staleRows is the oldest version of a store that an index may return to a
// process: that of its last wait, or the initial one.
func (c *Checker) staleRows(name string, r *run) map[string]*row {
	waited := uint64(0)
	for i := range r.log {
		waited = max(waited, r.log[i].waited)
	}
	if int(waited) >= len(c.state.snapshots) {
		return c.memory.tables[name].rows
	}
	return c.state.snapshots[waited][name]
}

// write is a put that can be made in any state.
type write struct {
	driver.Write
	row        *row
	event      *event.Envelope
	deliveries []delivery // one for each consumer
}

func (s stepStore) Put(_ context.Context, put driver.Write) error {
	w := &write{Write: put}
	return s.c.call(step{"put", s.name, put.UUID}, func() answer {
		w := w
		if put.Array != "" { // what it writes depends on the state
			whole, err := s.whole(put)
			if err != nil {
				return answer{err: err}
			}
			w = &write{Write: whole}
		}
		if w.row == nil {
			if err := s.c.prepare(w); err != nil {
				return answer{err: err}
			}
		}
		s.putInChunks(w.row)
		return answer{err: s.c.write(s.memoryTable, w)}
	}).err
}

// prepare computes the effects of a write.
func (c *Checker) prepare(w *write) error {
	if c.scenario.Fault.RewritePut != nil {
		c.scenario.Fault.RewritePut(&w.Write)
	}
	e := new(event.Envelope)
	w.event = e
	if w.Event.ID == "" { // a write without events
		w.row = newRow(w.Write)
		return nil
	}
	if err := json.Unmarshal(w.Event.Payload, e); err != nil {
		return err
	}
	// Workers acknowledge the events of their own writes without handling them, but for what follows from computed
	// fields.
	followed := slices.ContainsFunc(append(c.set.MappingsFrom(e.Store), c.set.AggregatesFrom(e.Store)...),
		func(m *store.Mapping) bool { return m.FollowsWorkers })
	derives := e.Origin == event.OriginMapping || e.Origin == event.OriginAggregate // copies can be copied onward
	dropped := derives && !followed ||
		c.scenario.Fault.DropEvent != nil && c.scenario.Fault.DropEvent(e)
	for i := range c.consumers {
		if !dropped && c.consumers[i].wants(w.Event.Subject) {
			d := newDelivery(i, c.consumers[i].Name, e)
			if c.scenario.Fault.NoFence {
				hidden := *e
				hidden.Ctx.Wait = ""
				d.event = &hidden
			}
			w.deliveries = append(w.deliveries, d)
		}
	}
	w.row = newRow(w.Write)
	return nil
}

// write makes a write and delivers its event to the consumers.
func (c *Checker) write(s *memoryTable, w *write) error {
	if is := c.scenario.Fault.Unconditional; is != nil && c.handler != nil && is(s.name, w.UUID) {
		w = c.unconditional(s, w)
	}
	if err := s.check(w.Write); err != nil {
		return err
	}
	if c.scenario.LaggingIndexes {
		c.state.snapshots = append(c.state.snapshots[:len(c.state.snapshots):len(c.state.snapshots)], c.snapshot())
	}
	before := s.rows[w.UUID]
	c.noteWrite(slices.Index(c.stores, s), w, c.tables())
	s.rows = maps.Clone(s.rows)
	s.rows[w.UUID] = w.row // its event is delivered below
	if c.scenario.Clock {
		c.state.clock++
	}
	if c.scenario.Fault.DropTombstones && w.Body == nil {
		delete(s.rows, w.UUID)
	}
	history, known := c.state.histories[w.event.Store+"/"+w.UUID]
	c.state.record(c.scenario.Mappings, w.event, c.began)
	if c.OnWrite != nil && c.writeErr == nil {
		c.writeErr = c.OnWrite(c.state.histories, w.event)
	}
	if c.scenario.Volatile && c.run != nil {
		c.addVolatile(s, w, before, history, known)
	} else {
		c.deliver(w.deliveries)
	}
	return nil
}

// unconditional returns a write that succeeds in any state.
func (c *Checker) unconditional(s *memoryTable, w *write) *write {
	other := *w
	other.IfRevision = 0
	if r := s.rows[w.UUID]; r != nil {
		if other.Revision = max(w.Revision, r.Revision+1); !r.Deleted {
			other.IfRevision = r.Revision
		}
	}
	other.row = newRow(other.Write)
	return &other
}

// deliver makes events available to their consumers.
func (c *Checker) deliver(deliveries []delivery) {
	if len(deliveries) == 0 {
		return
	}
	unacked := append(make([]*delivery, 0, len(c.state.unacked)+len(deliveries)), c.state.unacked...)
	for _, d := range deliveries {
		unacked = append(unacked, &d)
	}
	c.state.unacked = unacked
}

func matches(filter, subject string) bool {
	rest := strings.TrimPrefix(subject, event.LogPrefix)
	_, rest, _ = strings.Cut(rest, ".")
	return event.LogPrefix+"*."+rest[:strings.LastIndexByte(rest, '.')]+".*" == filter
}
