package main

import "time"

const (
	connections = 32   // requests that bench/load has in flight
	atOnce      = 1024 // events that a worker handles at once, as in pkg/app

	// Requests to the database of an event, one after the other: read the target, read the object, write the target,
	// read the object again.
	visits = 4
)

// deployment is the processes of a simulation, by their kind.
type deployment struct {
	processes map[string][]*process
	turn      map[string]int
}

func newDeployment() *deployment {
	return &deployment{processes: map[string][]*process{}, turn: map[string]int{}}
}

// measuredOn is the deployment of a point: each front and each worker has one of its processors, in turn, the others
// have all. The database executes so many requests at once.
func measuredOn(p *point, requests int) *deployment {
	var processors []*processor
	for range p.Processors {
		processors = append(processors, newProcessor())
	}
	d := newDeployment()
	for kind, n := range map[string]int{front: p.Fronts, worker: p.Workers} {
		for i := range n {
			d.add(kind, &process{on: processors[i%len(processors) : i%len(processors)+1], threads: 1})
		}
	}
	d.add(bus, &process{on: processors, threads: len(processors)})
	d.add(database, &process{on: processors, threads: requests})
	d.add(generator, &process{on: processors, threads: len(processors)})
	return d
}

func newProcessor() *processor { return &processor{place: -1} }

func (d *deployment) add(kind string, p *process) { d.processes[kind] = append(d.processes[kind], p) }

// next is the process of a kind whose turn it is.
func (d *deployment) next(kind string) *process {
	all := d.processes[kind]
	d.turn[kind]++
	return all[(d.turn[kind]-1)%len(all)]
}

// create is a create: of the work of the database, half is before the reply, and half, which removes the event from its
// record, after that. It has ended when its event is in the log.
func (m *model) create(s *simulation, d *deployment, replied, ended func()) {
	c := m.request[create]
	f, db := d.next(front), d.next(database)
	half, write := c[front].over(2), c[database].over(2)
	s.run(func() {
		replied()
		s.run(ended, c[bus].at(d.next(bus)))
		s.run(func() {}, write.at(db))
	}, c[generator].at(d.next(generator)), half.at(f), write.at(db), half.at(f))
}

func (m *model) get(s *simulation, d *deployment, replied, ended func()) {
	c := m.request[get]
	f, half := d.next(front), c[front].over(2)
	s.run(func() {
		ended()
		replied()
	}, c[generator].at(d.next(generator)), half.at(f), c[database].at(d.next(database)), half.at(f))
}

// apply is an event that a worker handles.
func (m *model) apply(s *simulation, d *deployment, w *process, applied func()) {
	s.run(applied, append([]step{m.event[bus].at(d.next(bus))},
		m.rounds(w, m.event[database].over(visits).at(d.next(database)))...)...)
}

// rounds are the steps of a worker, with its requests to the database.
func (m *model) rounds(w *process, request step) (steps []step) {
	for range visits {
		steps = append(steps, m.event[worker].over(visits).at(w), request)
	}
	return steps
}

// closedLoop has clients execute operations, one after the other each, and returns how many a second end. one begins an
// operation of a client, calls replied when that may begin the next, and ended when the operation has ended.
func (s *simulation) closedLoop(clients, operations int, one func(client int, replied, ended func())) (rate float64) {
	begun, left := 0, operations
	var begin func(client int)
	begin = func(client int) {
		if begun == operations {
			return
		}
		begun++
		one(client, func() { begin(client) }, func() {
			if left--; left == 0 {
				rate = float64(operations) / s.now.Seconds()
			}
		})
	}
	for client := range clients {
		begin(client)
	}
	s.finish()
	return rate
}

// quantile is one of some durations, which are sorted.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
