package binary_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	bindriver "belfry/pkg/binary/driver"
	"belfry/pkg/store/driver"
)

// A schedule lets processes make one step at a time, in an order that a test
// chooses: each call of the storage and of the stores with a process's context
// waits until it may continue. So every order of steps can be tried, with the real
// code.
type schedule struct {
	choose    chooser
	mayKill   func(p *process) bool
	processes []*process
	killed    bool
	moves     int // steps that were not the same question once more
	history   []string
}

// process is an upload, a sweeper or another process to interleave.
type process struct {
	name    string
	blind   bool // reads entries only on the way to a write, which compares once more
	run     func(ctx context.Context) error
	err     error
	done    bool
	killed  bool
	at      string        // the step it waits to make
	paused  bool          // before it arrived here: it repeats the call
	seen    int           // moves of all when it came here
	arrived chan struct{} // it waits, or is done
	next    chan struct{} // closed or sent to: continue
}

type processKey struct{}

// errKilled is the error of the steps of a killed process.
type errKilled struct{}

// gate has a process wait before it makes a step.
func gate(ctx context.Context, step string) {
	p, ok := ctx.Value(processKey{}).(*process)
	if !ok {
		return
	}
	if p.killed {
		panic(errKilled{})
	}
	p.at = step
	p.arrived <- struct{}{}
	<-p.next
	p.paused = false
	if p.killed {
		panic(errKilled{})
	}
}

func (p *process) start(ctx context.Context) {
	p.arrived, p.next = make(chan struct{}), make(chan struct{})
	go func() {
		defer func() {
			if r := recover(); r != nil {
				if _, ok := r.(errKilled); !ok {
					panic(r)
				}
			}
			p.done = true
			p.arrived <- struct{}{}
		}()
		p.err = p.run(context.WithValue(ctx, processKey{}, p))
	}()
	<-p.arrived
}

// chooser chooses an option.
type chooser func(options []option) int

// option is a possible next step.
type option struct {
	p    *process
	kill bool
}

// play runs the processes to their ends.
func (s *schedule) play(ctx context.Context) {
	for _, p := range s.processes {
		p.start(ctx)
		p.seen = -1
	}
	for {
		options := s.options()
		if len(options) == 0 {
			return
		}
		o := options[0]
		if len(options) > 1 {
			o = options[s.choose(options)]
		}
		if !o.p.paused {
			s.moves++
		}
		o.p.killed = o.kill
		s.killed = s.killed || o.kill
		what := o.p.at
		if o.kill {
			what = "is killed before: " + what
		}
		s.history = append(s.history, o.p.name+" "+what)
		o.p.next <- struct{}{}
		<-o.p.arrived
		o.p.seen = s.moves
	}
}

// paused notes that a process has paused before it asks once more.
func paused(ctx context.Context) {
	if p, ok := ctx.Value(processKey{}).(*process); ok {
		p.paused = true
	}
}

// options are the possible next steps. A process that repeats one call
// waits as long as no other process has made a step and one can.
func (s *schedule) options() []option {
	var moving, waiting, kills []option
	for _, p := range s.processes {
		if p.done {
			continue
		}
		if p.paused && p.seen == s.moves {
			waiting = append(waiting, option{p: p})
		} else {
			moving = append(moving, option{p: p})
		}
		if !s.killed && s.mayKill != nil && s.mayKill(p) {
			kills = append(kills, option{p: p, kill: true})
		}
	}
	if len(moving) == 0 {
		moving = waiting
	}
	return append(moving, kills...)
}

// everyOrder calls try with one choice after the other, until all have been
// tried, and returns how many orders that were.
func everyOrder(try func(choose chooser)) int {
	var path, widths []int
	for n := 1; ; n++ {
		depth := 0
		try(func(options []option) int {
			if depth == len(path) {
				path, widths = append(path, 0), append(widths, len(options))
			}
			if widths[depth] != len(options) {
				panic(fmt.Sprintf("the processes do not repeat themselves: %d options, then %d", widths[depth],
					len(options)))
			}
			depth++
			return path[depth-1]
		})
		path, widths = path[:depth], widths[:depth]
		for len(path) > 0 && path[len(path)-1]+1 == widths[len(path)-1] {
			path, widths = path[:len(path)-1], widths[:len(path)-1]
		}
		if len(path) == 0 {
			return n
		}
		path[len(path)-1]++
	}
}

// someOrders tries orders at random, in which a process often makes several
// steps before another one does, and one is killed now and then.
func someOrders(n int, seed uint64, try func(choose chooser)) {
	random := rand.New(rand.NewPCG(seed, 0))
	for range n {
		var last *process
		try(func(options []option) int {
			i := random.IntN(len(options))
			if options[i].kill && random.IntN(10) > 0 {
				i = 0
			}
			for j, o := range options {
				if o.p == last && !o.kill && random.IntN(4) > 0 {
					i = j
				}
			}
			last = options[i].p
			return i
		})
	}
}

func (s *schedule) String() string { return strings.Join(s.history, "\n") }

// steppedStorage makes acts on a storage steps.
type steppedStorage struct{ *memory }

func (s steppedStorage) Stage(ctx context.Context) (bindriver.Staged, error) {
	staged, err := s.memory.Stage(ctx)
	return steppedStage{staged}, err
}

func (s steppedStorage) Stat(ctx context.Context, hash string) (bindriver.Info, bool, error) {
	gate(ctx, "stats the content")
	return s.memory.Stat(ctx, hash)
}

func (s steppedStorage) Open(ctx context.Context, hash string, offset, length int64) (io.ReadCloser, error) {
	return s.memory.Open(ctx, hash, offset, length)
}

func (s steppedStorage) Delete(ctx context.Context, hash string) error {
	gate(ctx, "deletes the content")
	return s.memory.Delete(ctx, hash)
}

type steppedStage struct{ bindriver.Staged }

func (s steppedStage) Commit(ctx context.Context, hash string) error {
	gate(ctx, "commits the content")
	return s.Staged.Commit(ctx, hash)
}

// steppedBackend makes acts on stores steps, but for the reading of objects:
// they are compared once more when they are written.
type steppedBackend struct{ driver.Backend }

func (b steppedBackend) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := b.Backend.Open(ctx, spec)
	return steppedStore{s, spec.Name}, err
}

type steppedStore struct {
	driver.Store
	name string
}

func (s steppedStore) Get(ctx context.Context, uuid string) (driver.Record, bool, error) {
	if p, ok := ctx.Value(processKey{}).(*process); ok && !p.blind && s.name == "Contents" {
		gate(ctx, "reads the entry")
	}
	return s.Store.Get(ctx, uuid)
}

func (s steppedStore) Put(ctx context.Context, w driver.Write) error {
	gate(ctx, "writes to "+s.name)
	return s.Store.Put(ctx, w)
}

func (s steppedStore) Query(ctx context.Context, q driver.Query) (driver.Page, error) {
	if s.name == "Books" {
		gate(ctx, "asks who holds the content")
	}
	return s.Store.Query(ctx, q)
}

// clock is a time that tests set.
type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }
