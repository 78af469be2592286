package main

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"
)

// step is processor time that an operation takes at a kind of process, or a delay that takes none.
type step struct {
	kind  string
	time  time.Duration
	delay bool
}

// operation is what a client waits for, and what happens after that.
type operation struct {
	request []step
	logged  []step // then, until its event is in the log
	after   []step // then
}

// process executes steps on one of its processors, the one with the fewest others at that moment.
type process struct {
	processors []*processor
	serial     bool // one step at a time, in the order in which they arrive
	busy       bool
	waiting    []*task
}

// deployment is what is simulated.
type deployment struct {
	processors []*processor
	processes  map[string][]*process // by their kind; operations take turns
	clients    int
	next       map[string]int
}

// outcome is what a simulation shows.
type outcome struct {
	rate    float64            // operations a second, until the event of the last one is in the log
	p50     time.Duration      // of requests
	p99     time.Duration      // of requests
	settled time.Duration      // from the begin until everything is done
	busy    map[string]float64 // the share of its processors that each kind used until then, for kinds with processors of their own
}

// processor is shared equally by the tasks on it.
type processor struct {
	tasks []*task
	since time.Duration // when left of its tasks was right
	used  time.Duration
}

// task is an operation at one of its steps.
type task struct {
	steps []step
	done  func(now time.Duration)

	at   *process
	on   *processor
	left time.Duration
}

// simulation is in the middle of one.
type simulation struct {
	d      *deployment
	random *rand.Rand
	now    time.Duration
	timers timers
}

// simulate has the clients of a deployment execute operations, one after the other each. The time of a step is exponentially
// distributed around its mean; a simulation that is repeated has the same.
func simulate(d *deployment, o operation, operations int) outcome {
	s := &simulation{d: d, random: rand.New(rand.NewPCG(1, 1))}
	d.next = map[string]int{}
	var latencies []time.Duration
	var logged time.Duration
	begun := 0
	var begin func()
	begin = func() {
		if begun == operations {
			return
		}
		begun++
		began := s.now
		s.run(o.request, func(now time.Duration) {
			latencies = append(latencies, now-began)
			s.run(o.logged, func(now time.Duration) {
				logged = now
				s.run(o.after, func(time.Duration) {})
			})
			begin()
		})
	}
	for range d.clients {
		begin()
	}
	for s.advance() {
	}
	slices.Sort(latencies)
	return outcome{
		rate: float64(operations) / logged.Seconds(), settled: s.now, busy: d.busy(s.now),
		p50: latencies[len(latencies)/2], p99: latencies[len(latencies)*99/100],
	}
}

// busy is the share of its processors that each kind used.
func (d *deployment) busy(during time.Duration) map[string]float64 {
	shares := map[string]float64{}
	for kind, all := range d.processes {
		used, processors := time.Duration(0), map[*processor]bool{}
		for _, p := range all {
			for _, on := range p.processors {
				if !processors[on] {
					used += on.used
				}
				processors[on] = true
			}
		}
		shares[kind] = used.Seconds() / during.Seconds() / float64(len(processors))
	}
	return shares
}

// run executes steps, and then calls done.
func (s *simulation) run(steps []step, done func(now time.Duration)) {
	s.proceed(&task{steps: steps, done: done})
}

// proceed begins the next step of a task.
func (s *simulation) proceed(t *task) {
	if len(t.steps) == 0 {
		t.done(s.now)
		return
	}
	next := t.steps[0]
	t.steps = t.steps[1:]
	t.left = time.Duration(s.random.ExpFloat64() * float64(next.time))
	if next.delay {
		heap.Push(&s.timers, timer{s.now + t.left, t})
		return
	}
	all := s.d.processes[next.kind]
	t.at = all[s.d.next[next.kind]%len(all)]
	s.d.next[next.kind]++
	if t.at.serial && t.at.busy {
		t.at.waiting = append(t.at.waiting, t)
		return
	}
	s.execute(t)
}

func (s *simulation) execute(t *task) {
	t.at.busy = true
	t.on = slices.MinFunc(t.at.processors, func(a, b *processor) int { return len(a.tasks) - len(b.tasks) })
	t.on.catchUp(s.now)
	t.on.tasks = append(t.on.tasks, t)
}

// catchUp has the tasks of a processor make progress up to a moment.
func (p *processor) catchUp(now time.Duration) {
	if len(p.tasks) > 0 {
		each := (now - p.since) / time.Duration(len(p.tasks))
		for _, t := range p.tasks {
			t.left -= each
		}
		p.used += now - p.since
	}
	p.since = now
}

// advance continues until the next step ends, and reports whether there was one.
func (s *simulation) advance() bool {
	var first *task
	var at time.Duration
	for _, p := range s.d.processors {
		for _, t := range p.tasks {
			if ends := p.since + t.left*time.Duration(len(p.tasks)); first == nil || ends < at {
				first, at = t, ends
			}
		}
	}
	if len(s.timers) > 0 && (first == nil || s.timers[0].at < at) {
		next := heap.Pop(&s.timers).(timer) //nolint:errcheck,forcetypeassert // it has no others
		s.now = next.at
		s.proceed(next.task)
		return true
	}
	if first == nil {
		return false
	}
	s.now = max(s.now, at)
	s.end(first)
	return true
}

// end ends a step.
func (s *simulation) end(t *task) {
	t.on.catchUp(s.now)
	t.on.tasks = slices.Delete(t.on.tasks, slices.Index(t.on.tasks, t), slices.Index(t.on.tasks, t)+1)
	p := t.at
	if p.busy = false; len(p.waiting) > 0 {
		next := p.waiting[0]
		p.waiting = p.waiting[1:]
		s.execute(next)
	}
	s.proceed(t)
}

// timer is a task that is delayed.
type timer struct {
	at   time.Duration
	task *task
}

type timers []timer

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at < t[j].at }
func (t timers) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)        { *t = append(*t, x.(timer)) } //nolint:errcheck,forcetypeassert // heap pushes timers alone
func (t *timers) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}
