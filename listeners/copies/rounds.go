package copies

import (
	"context"
	"sync"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/mapping"
)

// Aggregates can change a hundred times a second, and each round writes all copies of them. After a round that they
// have caused, the next one of the source begins so much later, unless something else needs it. No round rests while
// mostResting events wait for such rounds: they keep others from being handled.
const (
	restFor     = time.Second
	mostResting = Concurrency / 2
)

// cause says why an event needs a round.
type cause struct {
	aggregates bool // all that has changed are aggregates of the source and what is computed from them
	awaited    bool // a request waits for all of the work
}

// round is one pass over the objects that name a source, for all events that had arrived when it began.
type round struct {
	done    chan struct{} // closed when it has ended
	used    bool          // an event waits for it
	urgent  bool          // one of the events does not let it rest
	resting int           // events that do
	left    *mapping.Rest
	err     error
}

func newRound() *round { return &round{done: make(chan struct{})} }

// ticket is an event's share of a round.
type ticket struct {
	*round
	goesOn bool // with what is left of it
}

// wait returns what is left of the round, for the event that continues with it. The other events need not: that one is
// not acknowledged before.
func (t ticket) wait(ctx context.Context) (*mapping.Rest, error) {
	select {
	case <-t.done:
		if !t.goesOn {
			return nil, t.err
		}
		return t.left, t.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// rounds runs one pass at a time for each source. Each page of a pass has the latest values of the source. An event
// that arrives during a pass, or while the next one rests, waits for the next one, which all such events share.
type rounds struct {
	run     func(ctx context.Context, s source) (*mapping.Rest, error)
	ctx     context.Context // canceled by Close
	cancel  context.CancelFunc
	runners sync.WaitGroup

	mu      sync.Mutex
	running map[source]*runner
	resting int // events of all rounds that have not begun
	closed  bool
}

// runner runs the rounds of a source.
type runner struct {
	next   *round
	until  time.Time     // next may rest until then
	joined chan struct{} // receives when an event has joined
}

// Close cancels the passes in flight and waits for them to return. Events that arrive later fail.
func (r *rounds) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel()
	r.runners.Wait()
}

// join returns an event's share of the next round of a source.
func (r *rounds) join(s source, c cause) ticket {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		closed := newRound()
		closed.err = errs.New(errs.Canceled, "the worker of copies has stopped")
		close(closed.done)
		return ticket{round: closed}
	}
	at := r.running[s]
	if at == nil {
		at = &runner{next: newRound(), joined: make(chan struct{}, 1)}
		r.running[s] = at
		r.runners.Go(func() { r.runAll(s, at) })
	}
	next := at.next
	first := !next.used
	next.used = true
	if c.aggregates && !c.awaited && r.resting < mostResting {
		next.resting++
		r.resting++
	} else {
		next.urgent = true
	}
	select {
	case at.joined <- struct{}{}:
	default:
	}
	return ticket{next, first || c.awaited}
}

// take returns the round that begins now, or how long the runner has to wait for it; neither if no event waits for one,
// and then the runner must return.
func (r *rounds) take(s source, at *runner) (now *round, rest time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, rest = at.next, time.Until(at.until)
	switch {
	case rest > 0 && !now.urgent && !r.closed:
		return nil, rest
	case !now.used:
		delete(r.running, s)
		return nil, 0
	}
	at.next, at.until = newRound(), time.Time{}
	if now.resting > 0 || rest > 0 {
		at.until = time.Now().Add(restFor)
	}
	r.resting -= now.resting
	return now, 0
}

func (r *rounds) runAll(s source, at *runner) {
	for {
		now, rest := r.take(s, at)
		switch {
		case now != nil:
			now.left, now.err = r.run(r.ctx, s)
			close(now.done)
		case rest > 0:
			select {
			case <-at.joined:
			case <-time.After(rest):
			case <-r.ctx.Done():
			}
		default:
			return
		}
	}
}
