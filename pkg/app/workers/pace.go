package workers

import (
	"context"
	"math"
	"sync"
	"time"

	"belfry/internal/backoff"
	"belfry/listeners/copies"
	"belfry/pkg/app/serving"
	"belfry/pkg/bus"
	"belfry/pkg/event"
	"belfry/pkg/listener"
	protocol "belfry/pkg/mapping"
)

// A change of an object can change a million copies, and each is an event in the log, which keeps a limited number. The
// copies wait while belfry's own listeners have more events to handle than this part of the log.
const logShare = 10

// partShare is the part of those events that one part of a pass may cause: the event that begins the pass stays in the
// log for so long.
const partShare = 10

const (
	paceEvery = 200 * time.Millisecond // how often the lag is read at most
	ownWait   = time.Second            // for the listener of copies itself, which is needed for its progress
	restPart  = 4                      // after some objects: this part of the time that they took
	restMost  = time.Second            // the longest rest
	queued    = 8                      // events that may wait to be published before those of more copies
)

// pace delays copies for the sake of other work.
type pace struct {
	generation *serving.Generation

	mu     sync.Mutex
	read   time.Time
	limit  int  // of the events that a listener may have to handle; 0: any number
	behind bool // another listener has too many events
	own    bool // the listener of copies has
}

// newCopier returns the worker of copies of a generation.
func (w *Workers) newCopier(g *serving.Generation) *copies.Worker {
	p := &pace{generation: g}
	return copies.NewWorker(g.Set, copies.Options{
		CopierOptions: protocol.CopierOptions{Pace: p.wait, Most: p.most},
		HandOver: func(ctx context.Context, e *event.Envelope) error {
			err := listener.HandOver(ctx, g.Bus, copies.Name, e)
			if err == nil {
				w.Copies.inFlight.HandedOver(e)
			}
			return err
		},
	})
}

// wait delays the next copies after those that took some time. They share the machine and the bus with the requests of
// clients and the work that these cause: they rest for a part of the time, and do not queue events before theirs.
func (p *pace) wait(ctx context.Context, took time.Duration) error {
	for began := time.Now(); ; {
		behind, own := p.lagging(ctx)
		waited := time.Since(began)
		full := took > 0 && p.generation.Relay.Stats().Events > queued
		if !behind && (!own && !full || waited > ownWait) {
			return backoff.Sleep(ctx, min(took/restPart, restMost))
		}
		pause := paceEvery
		if !behind && !own {
			pause = time.Millisecond
		}
		if err := backoff.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// most is how many objects a part of a pass has, about.
func (p *pace) most(ctx context.Context) int {
	p.lagging(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limit == 0 {
		return math.MaxInt
	}
	return p.limit / partShare
}

// lagging reports which listeners have too many events. If that can't be read, nothing waits.
func (p *pace) lagging(ctx context.Context) (behind, own bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.read) < paceEvery {
		return p.behind, p.own
	}
	p.behind, p.own = false, false
	p.limit = p.readLimit(ctx)
	for _, spec := range p.generation.Plan.Specs() {
		if p.limit == 0 {
			break
		}
		pending, unacked, err := listener.Lag(ctx, p.generation.Bus, spec.Name)
		if err != nil || pending+unacked <= uint64(p.limit) { //nolint:gosec // positive
			continue
		}
		if spec.Name == copies.Name {
			p.own = true
		} else {
			p.behind = true
		}
	}
	p.read = time.Now()
	return p.behind, p.own
}

// readLimit returns how many events a listener may have to handle: a share of those that the log can keep, by its
// messages and by its bytes; 0: any number.
func (p *pace) readLimit(ctx context.Context) int {
	stream, err := p.generation.Bus.JetStream().Stream(ctx, bus.StreamEvents)
	if err != nil {
		return 0
	}
	info := stream.CachedInfo()
	limit := int64(0)
	if most := info.Config.MaxMsgs; most > 0 {
		limit = max(1, most/logShare)
	}
	if most := info.Config.MaxBytes; most > 0 && info.State.Msgs > 0 {
		average := max(1, int64(info.State.Bytes/info.State.Msgs)) //nolint:gosec // bytes of an event
		if byBytes := most / average / logShare; limit == 0 || byBytes < limit {
			limit = max(1, byBytes)
		}
	}
	return int(limit)
}
