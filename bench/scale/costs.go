package main

import (
	"math"
	"time"
)

// cost is the processor time of an operation at one kind of process: where the process has other work as well, and how
// much more it is where it has none.
type cost struct{ time, wake time.Duration }

// costOf is a cost of which both parts were measured; alone may be 0: it was not.
func costOf(time, alone time.Duration) cost { return cost{time, max(0, alone-time)} }

// over is a cost that is spread over several steps.
func (c cost) over(steps int) cost {
	return cost{c.time / time.Duration(steps), c.wake / time.Duration(steps)}
}

func (c cost) at(p *process) step { return step{at: p, time: c.time, wake: c.wake} }

// costs are those of each kind of process.
type costs map[string]cost

// model is what was measured of one backend with one front and one worker, in the terms of the simulation.
type model struct {
	request map[string]costs // of create and get
	event   costs            // of an event that a worker handles, whose target has no other
	threads int              // of the database: requests that it executes at once
}

// modelOf makes a model of the times that a function takes from points: (*point).spent, those while rates were
// measured, or (*point).total, all.
func modelOf(ps points, of func(p *point, kind string) time.Duration) *model {
	m := &model{request: map[string]costs{}, event: costs{}, threads: 1}
	for i := range ps {
		// The servers that stand in for databases write one record at a time; some are more than one process.
		m.threads = max(m.threads, int(math.Ceil(ps[i].Busy[database])))
	}
	for _, operation := range []string{create, get} {
		m.request[operation] = costs{}
		for _, kind := range []string{front, bus, database, generator} {
			m.request[operation][kind] = costOf(of(ps.reference(operation), kind),
				of(ps.reference(operation+"-alone"), kind))
		}
	}
	for _, kind := range []string{worker, bus, database} {
		// What one event alone costs is what a create with an entry costs alone, less a create.
		alone := of(ps.reference(childAlone), kind) - of(ps.reference(createAlone), kind)
		m.event[kind] = costOf(of(ps.reference(mapOwn), kind), alone)
	}
	return m
}

// slowed is a model on processors that other programs used for a share of the time.
func (m *model) slowed(share float64) *model {
	longer := func(t time.Duration) time.Duration { return time.Duration(float64(t) / (1 - share)) }
	slow := func(of costs) costs {
		out := costs{}
		for kind, c := range of {
			out[kind] = cost{longer(c.time), longer(c.wake)}
		}
		return out
	}
	out := &model{request: map[string]costs{}, event: slow(m.event), threads: m.threads}
	for operation, of := range m.request {
		out.request[operation] = slow(of)
	}
	return out
}
