package route

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// Forwarded is a round that the owner of its target was asked for.
type Forwarded struct {
	id       uint64
	round    Round
	owner    string
	reported time.Time // when the owner last reported it, or it was asked for
	message  uint64    // in which it was sent; 0: it was not yet
	done     chan struct{}
	err      error // once done is closed
}

// Forward asks the owner of the round's target to run it. It returns nil when this process is to run it, as the owner
// or for want of one.
func (g *Group) Forward(r Round) *Forwarded {
	if g == nil {
		return nil
	}
	owner := g.owner(&r)
	if owner == "" {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.left || g.members[owner] == nil || len(g.pending) >= maxPending {
		return nil
	}
	g.last++
	f := &Forwarded{id: g.last, round: r, owner: owner, reported: time.Now(), done: make(chan struct{})}
	g.pending[f.id] = f
	box := g.outbox(owner)
	box.rounds = append(box.rounds, f)
	return f
}

// Wait returns nil once the owner has reported that the round has succeeded. With any error but the context's, this
// process must run the round.
func (f *Forwarded) Wait(ctx context.Context) error {
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// settle ends the wait for a round. The lock must be held.
func (g *Group) settle(f *Forwarded, err error) {
	if g.pending[f.id] != f {
		return
	}
	delete(g.pending, f.id)
	if err == nil {
		g.counts.forwarded.Add(1)
	} else {
		g.counts.fallbacks.Add(1)
	}
	f.err = err
	close(f.done) // last: a waiter finds the round counted
}

// reported records the rounds that another process has run for this one.
func (g *Group) reported(m *message) {
	g.mu.Lock()
	defer g.mu.Unlock()
	each := func(ids []uint64, do func(f *Forwarded)) {
		for _, id := range ids {
			if f := g.pending[id]; f != nil && f.owner == m.From {
				do(f)
			}
		}
	}
	now := time.Now()
	each(m.Done, func(f *Forwarded) { g.settle(f, nil) })
	each(m.Failed, func(f *Forwarded) { g.settle(f, errFailed) })
	each(m.Pending, func(f *Forwarded) { f.reported = now })
}

// undelivered is called by the server's notice that nobody has received a message.
func (g *Group) undelivered(m *nats.Msg) {
	const noResponders = "503"
	number, err := strconv.ParseUint(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:], 10, 64)
	if err != nil || number == 0 || len(m.Data) > 0 || m.Header.Get("Status") != noResponders {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.pending {
		if f.message == number {
			g.remove(f.owner) // until its next heartbeat
			g.settle(f, errUndelivered)
		}
	}
}

// counts are of rounds.
type counts struct{ forwarded, fallbacks, served atomic.Uint64 }

// Stats are those of a Group.
type Stats struct {
	Members   int    // that share targets, this process included
	Forwarded uint64 // rounds that others have run for this process
	Fallbacks uint64 // rounds that others were asked for and did not complete, so that this process ran them
	Served    uint64 // rounds that this process has run for others
}

// Stats returns the counts of the group so far.
func (g *Group) Stats() Stats {
	s := Stats{Members: 1, Forwarded: g.counts.forwarded.Load(), Fallbacks: g.counts.fallbacks.Load(),
		Served: g.counts.served.Load()}
	if others := g.others.Load(); others != nil {
		s.Members += len(*others)
	}
	return s
}
