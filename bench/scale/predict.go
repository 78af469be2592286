package main

import "math"

// prediction is a point with its simulation.
type prediction struct {
	*point
	// operations a second, by the costs with one front and one worker; 0: it was not
	Simulated float64 `json:"simulated,omitempty"`
	ByOwn     float64 `json:"byOwn,omitempty"` // by the processor time that was measured at the point itself
}

// predict simulates the points of a backend, by the costs with one front and one worker on two processors. What it
// simulates by the costs of the point itself shows how much of its error is that of the queues, and how much that of
// the costs.
func predict(ps points) (all []prediction) {
	m := modelOf(ps, (*point).spent)
	for i := range ps {
		p := &ps[i]
		predicted := prediction{point: p}
		if ps.reference(p.Operation) != nil {
			slow := math.Min(0.9, p.Others/float64(p.Processors))
			predicted.Simulated = m.slowed(slow).rate(p)
			own := modelOf(points{p.asReference()}, (*point).spent)
			own.threads = m.threads
			predicted.ByOwn = own.slowed(slow).rate(p)
		}
		all = append(all, predicted)
	}
	return all
}

// rate simulates a point; 0: it can't be.
func (m *model) rate(p *point) float64 {
	s, d := newSimulation(), measuredOn(p, m.threads)
	switch p.Operation {
	case create:
		return s.closedLoop(connections, p.Operations,
			func(_ int, replied, ended func()) { m.create(s, d, replied, ended) })
	case get:
		return s.closedLoop(connections, p.Operations,
			func(_ int, replied, ended func()) { m.get(s, d, replied, ended) })
	case mapOwn:
		return s.closedLoop(atOnce*p.Workers, p.Operations, func(slot int, replied, ended func()) {
			m.apply(s, d, d.processes[worker][slot%p.Workers], func() {
				ended()
				replied()
			})
		})
	default:
		return 0
	}
}
