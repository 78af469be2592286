package main

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"
)

// processor is shared equally by the steps on it.
type processor struct {
	tasks []*task
	since time.Duration // when left of its tasks was right
	used  time.Duration
	ends  time.Duration // when the first of its tasks ends, if none arrives
	place int           // in the heap of busy processors; -1: it is idle
}

// process executes steps on one of its processors, the one with the fewest others at that moment, as many at once as it
// has threads, in the order in which they arrive.
type process struct {
	on      []*processor
	threads int
	running int
	waiting []*task
}

// step is processor time that an operation takes at a process, or a delay that takes none.
type step struct {
	at   *process // nil: a delay
	time time.Duration
	// more where the process has nothing else to do: it has to wake, and shares its work with no other operation
	wake time.Duration
}

// task is an operation at one of its steps.
type task struct {
	steps []step
	done  func()
	at    *process
	on    *processor
	left  time.Duration
}

// simulation executes steps in virtual time.
type simulation struct {
	random *rand.Rand
	now    time.Duration
	timers timers
	busy   running
}

// newSimulation returns one that is the same each time.
func newSimulation() *simulation { return &simulation{random: rand.New(rand.NewPCG(1, 1))} }

// run executes steps, and then calls done. Their times are exponentially distributed around their means.
func (s *simulation) run(done func(), steps ...step) {
	s.proceed(&task{steps: steps, done: done})
}

// after calls do after a delay.
func (s *simulation) after(delay time.Duration, do func()) { s.at(s.now+delay, do) }

func (s *simulation) at(moment time.Duration, do func()) { heap.Push(&s.timers, timer{moment, do}) }

func (s *simulation) exponential(mean time.Duration) time.Duration {
	return time.Duration(s.random.ExpFloat64() * float64(mean))
}

// proceed begins the next step of a task.
func (s *simulation) proceed(t *task) {
	if len(t.steps) == 0 {
		t.done()
		return
	}
	next := t.steps[0]
	t.steps = t.steps[1:]
	if next.at == nil {
		s.after(s.exponential(next.time), func() { s.proceed(t) })
		return
	}
	mean := next.time
	if next.at.running == 0 {
		mean += next.wake
	}
	t.at, t.left = next.at, s.exponential(mean)
	if t.at.running == t.at.threads {
		t.at.waiting = append(t.at.waiting, t)
		return
	}
	s.execute(t)
}

func (s *simulation) execute(t *task) {
	t.at.running++
	t.on = slices.MinFunc(t.at.on, func(a, b *processor) int { return len(a.tasks) - len(b.tasks) })
	t.on.catchUp(s.now)
	t.on.tasks = append(t.on.tasks, t)
	s.reschedule(t.on)
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

// reschedule computes when the first task of a processor ends.
func (s *simulation) reschedule(p *processor) {
	if len(p.tasks) == 0 {
		heap.Remove(&s.busy, p.place)
		return
	}
	p.ends = s.now + max(0, p.first().left*time.Duration(len(p.tasks)))
	if p.place < 0 {
		heap.Push(&s.busy, p)
		return
	}
	heap.Fix(&s.busy, p.place)
}

func (p *processor) first() *task {
	return slices.MinFunc(p.tasks, func(a, b *task) int { return int(a.left - b.left) })
}

// finish continues until nothing is left to do.
func (s *simulation) finish() {
	for s.advance() {
	}
}

// advance continues until the next step or delay ends, and reports whether there was one.
func (s *simulation) advance() bool {
	switch {
	case len(s.busy) == 0 && len(s.timers) == 0:
		return false
	case len(s.busy) == 0 || len(s.timers) > 0 && s.timers[0].at < s.busy[0].ends:
		next := heap.Pop(&s.timers).(timer) //nolint:errcheck,forcetypeassert // it has no others
		s.now = next.at
		next.do()
	default:
		s.now = s.busy[0].ends
		s.end(s.busy[0])
	}
	return true
}

// end ends the first task of a processor.
func (s *simulation) end(on *processor) {
	on.catchUp(s.now)
	t := on.first()
	on.tasks = slices.Delete(on.tasks, slices.Index(on.tasks, t), slices.Index(on.tasks, t)+1)
	s.reschedule(on)
	t.at.running--
	if len(t.at.waiting) > 0 {
		next := t.at.waiting[0]
		t.at.waiting = t.at.waiting[1:]
		s.execute(next)
	}
	s.proceed(t)
}

type timer struct {
	at time.Duration
	do func()
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

// running are the processors that have tasks.
type running []*processor

func (r running) Len() int           { return len(r) }
func (r running) Less(i, j int) bool { return r[i].ends < r[j].ends }
func (r running) Swap(i, j int) {
	r[i], r[j] = r[j], r[i]
	r[i].place, r[j].place = i, j
}
func (r *running) Push(x any) {
	p := x.(*processor) //nolint:errcheck,forcetypeassert // heap pushes processors alone
	p.place = len(*r)
	*r = append(*r, p)
}
func (r *running) Pop() any {
	last := (*r)[len(*r)-1]
	last.place = -1
	*r = (*r)[:len(*r)-1]
	return last
}
