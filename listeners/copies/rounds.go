package copies

import (
	"context"
	"sync"

	"belfry/pkg/errs"
	"belfry/pkg/mapping"
)

// round is one pass over the objects that name a source, for all events that had arrived when it began.
type round struct {
	done chan struct{} // closed when it has ended
	used bool          // an event waits for it
	left *mapping.Rest
	err  error
}

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
// that arrives during a pass waits for the next one, which all such events share.
type rounds struct {
	run     func(ctx context.Context, s source) (*mapping.Rest, error)
	ctx     context.Context // canceled by Close
	cancel  context.CancelFunc
	runners sync.WaitGroup

	mu     sync.Mutex
	next   map[source]*round // of every source that has a runner
	closed bool
}

// Close cancels the passes in flight and waits for them to return. Events that arrive later fail.
func (r *rounds) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel()
	r.runners.Wait()
}

// join returns an event's share of the next round of a source. awaited says that a request waits for all of its work.
func (r *rounds) join(s source, awaited bool) ticket {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		closed := &round{done: make(chan struct{}), err: errs.New(errs.Canceled, "the worker of copies has stopped")}
		close(closed.done)
		return ticket{round: closed}
	}
	next, running := r.next[s]
	if !running {
		next = &round{done: make(chan struct{})}
		r.next[s] = next
		r.runners.Go(func() { r.runAll(s) })
	}
	first := !next.used
	next.used = true
	return ticket{next, first || awaited}
}

// take returns the round that begins now; nil if no event waits for one, and then the runner must return.
func (r *rounds) take(s source) *round {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.next[s]
	if !now.used {
		delete(r.next, s)
		return nil
	}
	r.next[s] = &round{done: make(chan struct{})}
	return now
}

func (r *rounds) runAll(s source) {
	for now := r.take(s); now != nil; now = r.take(s) {
		now.left, now.err = r.run(r.ctx, s)
		close(now.done)
	}
}
