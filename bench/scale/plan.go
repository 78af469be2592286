package main

import (
	"errors"
	"math"
	"slices"
	"time"
)

// target is a load that a deployment is planned for, with what is assumed, not measured.
type target struct {
	creates    float64       // a second
	mapped     float64       // share of the creates that have an entry in the array of a target
	latency    time.Duration // of a request to the database, however many there are
	wait       time.Duration // that processes may add at the 99th percentile
	busy       float64       // share of the time that processes of a plan are busy
	partitions int           // of the log's subjects
}

// stream is the kind of process that a stream's leader is: it stores one event after the other, and syncs each.
const stream = "stream"

// need is how many processes of a kind a target needs.
type need struct {
	kind      string
	micros    float64 // of one process, for each of so many a second, with one front and one worker
	most      float64 // at any number of processes that was measured
	a         string  // what these are
	rate      float64
	divided   float64 // the plain division
	simulated int     // the fewest with which waits stay within bounds; 0: more than there are partitions
	planned   int     // that are busy for the share of the time that the target says
}

// plan is what a target needs.
type plan struct {
	target
	backend    string
	needs      []need
	bus        float64 // processors of the bus's servers
	reads      float64 // requests to the database, a second
	writes     float64
	inFlight   float64 // of these
	reply, log stage   // with the planned numbers
	applied    stage
}

// stage is how long a part of the work of a create takes.
type stage struct{ p50, p99 time.Duration }

// planFor plans for a target by what was measured of one backend.
func planFor(ps points, t target) (*plan, error) {
	created, mapped, appended := ps.reference(create), ps.reference(mapOwn), ps.appended()
	if created == nil || mapped == nil || appended == nil {
		return nil, errors.New("a plan needs the points create, map, and append to one stream")
	}
	m := modelOf(ps, (*point).total)
	events := t.creates * (created.Events + t.mapped*mapped.Events)
	p := &plan{target: t, backend: created.Backend}
	for _, n := range []need{
		{kind: front, a: "create", micros: created.CPU[front], most: ps.most(create, front), rate: t.creates},
		{kind: worker, a: "event of a create with an entry", micros: mapped.CPU[worker], most: ps.most(mapOwn, worker),
			rate: t.creates * t.mapped},
		{kind: stream, a: "event in the log", micros: 1e6 / appended.Rate, rate: events},
	} {
		n.divided = n.rate * n.micros / 1e6
		n.planned = int(math.Ceil(n.divided * max(1, n.most/n.micros) / t.busy))
		p.needs = append(p.needs, n)
	}
	p.bus = t.creates * (created.CPU[bus] + t.mapped*mapped.CPU[bus]) / 1e6
	for name, n := range created.Database {
		p.request(name, t.creates*n)
	}
	for name, n := range mapped.Database {
		p.request(name, t.creates*t.mapped*n)
	}
	p.inFlight = (p.reads + p.writes) * t.latency.Seconds()
	p.simulate(m, time.Duration(1e9/appended.Rate))
	return p, nil
}

// appended is the point of one stream to which belfry's batches were appended; nil: there is none.
func (ps points) appended() *point {
	i := slices.IndexFunc(ps, func(p point) bool { return p.Operation == appendOnly && p.Streams == 1 && p.Batch > 1 })
	if i < 0 {
		return nil
	}
	return &ps[i]
}

// most is the greatest processor time of a kind of process that was measured for an operation.
func (ps points) most(operation, kind string) (most float64) {
	for _, p := range ps {
		if p.Operation == operation {
			most = max(most, p.CPU[kind])
		}
	}
	return most
}

// request counts requests to the database, of the kinds that bench/load counts.
func (p *plan) request(name string, rate float64) {
	if slices.Contains([]string{"GetItem", "BatchGetItem", "Query", "find", "getMore"}, name) {
		p.reads += rate
		return
	}
	p.writes += rate
}

// steps are how many more processes than the plain division are tried.
var steps = []float64{1, 1.01, 1.02, 1.03, 1.05, 1.07, 1.1, 1.15, 1.2, 1.3, 1.5, 2}

// simulate finds the fewest processes of each kind with which waits stay within bounds, while there are enough of the
// others, and what the plan leads to.
func (p *plan) simulate(m *model, store time.Duration) {
	many := map[string]int{}
	for _, n := range p.needs {
		many[n.kind] = max(1, int(math.Ceil(2*n.divided)))
	}
	many[stream] = p.partitions
	least := p.offer(m, store, many)
	for i := range p.needs {
		n := &p.needs[i]
		with := map[string]int{front: many[front], worker: many[worker], stream: many[stream]}
		for _, step := range steps {
			tried := with[n.kind]
			with[n.kind] = max(1, int(math.Ceil(step*n.divided)))
			if n.kind == stream {
				with[stream] = evenly(with[stream], p.partitions)
			}
			if float64(with[n.kind]) < n.divided {
				break
			}
			if with[n.kind] == tried && step > steps[0] {
				continue
			}
			if p.offer(m, store, with).of(n.kind).p99 <= least.of(n.kind).p99+p.wait {
				n.simulated = with[n.kind]
				break
			}
		}
	}
	planned := map[string]int{}
	for _, n := range p.needs {
		planned[n.kind] = max(1, n.planned)
	}
	planned[stream] = min(planned[stream], p.partitions)
	stages := p.offer(m, store, planned)
	p.reply, p.log, p.applied = stages.of(front), stages.of(stream), stages.of(worker)
}

// evenly is the smallest number of streams, from n on, that is better than one less: the stream with the most
// partitions is the bound, and of 24 for 32 partitions some have two, as of 16.
func evenly(n, partitions int) int {
	for ; n < partitions; n++ {
		if most := (partitions + n - 1) / n; n == (partitions+most-1)/most {
			return n
		}
	}
	return partitions
}

// offered is how long creates took: until the reply, from there until the event was in the log, and from there until
// the entry was in its array.
type offered map[string][]time.Duration

func (o offered) of(kind string) stage {
	return stage{quantile(o[kind], 0.5), quantile(o[kind], 0.99)}
}

// offer simulates half a second of creates at the rate of the target, which arrive at random, on some processes, each
// of which has a processor of its own. The database delays requests and is never busy.
func (p *plan) offer(m *model, store time.Duration, processes map[string]int) offered {
	const second = 0.5
	s, d, took := newSimulation(), newDeployment(), offered{}
	for kind, n := range processes {
		for range n {
			d.add(kind, &process{on: []*processor{newProcessor()}, threads: 1})
		}
	}
	request := step{time: p.latency}
	c := m.request[create]
	appendEvent := func(done func()) {
		// The partition is that of a uuid, and each stream has some partitions.
		partition := s.random.IntN(p.partitions)
		s.run(done, step{at: d.processes[stream][partition*processes[stream]/p.partitions], time: store})
	}
	arrives := time.Duration(0)
	for range int(p.creates * second) {
		arrives += s.exponential(time.Duration(float64(time.Second) / p.creates))
		s.at(arrives, func() {
			f, began := d.next(front), s.now
			s.run(func() {
				took[front] = append(took[front], s.now-began)
				replied := s.now
				appendEvent(func() {
					took[stream] = append(took[stream], s.now-replied)
					if s.random.Float64() >= p.mapped {
						return
					}
					logged, w := s.now, d.next(worker)
					s.run(func() {
						took[worker] = append(took[worker], s.now-logged)
						appendEvent(func() {})
					}, m.rounds(w, request)...)
				})
			}, c[front].over(2).at(f), request, c[front].over(2).at(f))
		})
	}
	s.finish()
	for _, all := range took {
		slices.Sort(all)
	}
	return took
}
