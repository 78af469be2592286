package model

import (
	"fmt"
	"maps"
	"slices"
)

// With Scenario.Volatile a write is visible at once and durable later. The writes of a log become
// durable one after another, each by a transition. Until its write is durable the process that made it
// waits for its answer, and the event of the write is not delivered. A power failure takes back all
// writes that are not durable and ends all handlers and the operations of clients under way.

// volatileWrite is a write that is visible and not durable.
type volatileWrite struct {
	id         uint64 // unique in a state
	table      int
	uuid       string
	key        string // of its history
	row        *row   // what it replaced; nil for nothing
	history    History
	known      bool // there was a history
	deliveries []delivery
	hash       uint64
}

func (w *volatileWrite) String() string { return "write of " + w.key }

// log is the log that a write is in.
func (c *Checker) log(w *volatileWrite) int {
	if c.scenario.OwnLogs {
		return w.table
	}
	return 0
}

// addVolatile records a write that the current process makes.
func (c *Checker) addVolatile(s *memoryTable, w *write, before *row, history History, known bool) {
	v := &volatileWrite{
		id: 1, table: slices.Index(c.stores, s), uuid: w.UUID, key: w.event.Store + "/" + w.UUID,
		row: before, history: history, known: known, deliveries: w.deliveries, hash: w.row.hash,
	}
	if n := len(c.state.volatile); n > 0 {
		v.id = c.state.volatile[n-1].id + 1
	}
	c.state.volatile = append(c.state.volatile[:len(c.state.volatile):len(c.state.volatile)], v)
	c.wrote = v.id
}

// blocked reports whether a call has to wait: it would show what is not durable.
func (c *Checker) blocked(s *state, next call) bool {
	if c.scenario.Fault.ShowVolatile {
		return false
	}
	return slices.ContainsFunc(s.volatile, func(w *volatileWrite) bool {
		return c.stores[w.table].name == next.step.store && (next.step.op == "query" || next.step.uuid == w.uuid)
	})
}

// volatileTransitions are those that make writes durable, or take them back.
func (c *Checker) volatileTransitions(s *state) (all []transition) {
	for i, w := range s.volatile {
		if !slices.ContainsFunc(s.volatile[:i], func(o *volatileWrite) bool { return c.log(o) == c.log(w) }) {
			all = append(all, transition{syncWrite, i})
		}
	}
	if len(s.volatile) > 0 {
		all = append(all, transition{powerFailure, 0})
	}
	return all
}

// sync makes a write durable: its process gets its answer, and its event is delivered.
func (c *Checker) sync(i int) label {
	s := c.state
	w := s.volatile[i]
	s.volatile = slices.Delete(slices.Clone(s.volatile), i, i+1)
	c.deliver(w.deliveries)
	for i := range s.clients {
		if s.clients[i].waits == w.id {
			s.clients[i].waits = 0
		}
	}
	for i := range s.handlers {
		if s.handlers[i].waits == w.id {
			s.handlers[i].waits = 0
		}
	}
	return label{"log", c.log(w), w, nil, "is durable"}
}

// failPower takes back what is not durable and ends all processes.
func (c *Checker) failPower() label {
	s := c.state
	s.tables, s.histories = slices.Clone(s.tables), maps.Clone(s.histories)
	for _, w := range slices.Backward(s.volatile) {
		s.tables[w.table] = maps.Clone(s.tables[w.table])
		if w.row == nil {
			delete(s.tables[w.table], w.uuid)
		} else {
			s.tables[w.table][w.uuid] = w.row
		}
		if !w.known {
			delete(s.histories, w.key)
		} else {
			s.histories[w.key] = w.history
		}
	}
	lost := len(s.volatile)
	s.volatile = nil
	for i := range s.clients {
		switch {
		case s.clients[i].begun:
			s.clients[i] = client{at: s.clients[i].at + 1}
		default:
			s.clients[i].waits = 0
		}
	}
	handlers := s.handlers
	s.handlers = nil
	for _, h := range handlers {
		s.redeliver(h.delivery)
	}
	return label{"power", 0, lostWrites(lost), nil, "are lost, all workers crash"}
}

type lostWrites int

func (n lostWrites) String() string { return fmt.Sprintf("%d writes", int(n)) }
