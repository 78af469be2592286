package workers

import (
	"context"
	"sync"
	"time"

	"belfry/internal/backoff"
	"belfry/listeners/copies"
	"belfry/pkg/app/serving"
	"belfry/pkg/bus"
	"belfry/pkg/listener"
)

// A change of an object can change a million copies, and each is an event in the log, which keeps a limited number. The
// copies wait while belfry's own listeners have more events to handle than this part of the log.
const logShare = 10

const (
	paceEvery = 200 * time.Millisecond // how often the lag is read at most
	ownWait   = time.Second            // for the listener of copies itself, which is needed for its progress
)

// pace delays copies while listeners do not keep up.
type pace struct {
	generation *serving.Generation

	mu     sync.Mutex
	read   time.Time
	behind bool // another listener has too many events
	own    bool // the listener of copies has
}

// copyPace returns what the copies of a generation wait for before each page.
func (w *Workers) copyPace(g *serving.Generation) func(ctx context.Context) error {
	p := &pace{generation: g}
	return p.wait
}

func (p *pace) wait(ctx context.Context) error {
	for began := time.Now(); ; {
		behind, own := p.lagging(ctx)
		if !behind && (!own || time.Since(began) > ownWait) {
			return nil
		}
		if err := backoff.Sleep(ctx, paceEvery); err != nil {
			return err
		}
	}
}

// lagging reports which listeners have too many events. If that can't be read, nothing waits.
func (p *pace) lagging(ctx context.Context) (behind, own bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.read) < paceEvery {
		return p.behind, p.own
	}
	p.behind, p.own = false, false
	limit := p.limit(ctx)
	for _, spec := range p.generation.Plan.Specs() {
		if limit == 0 {
			break
		}
		pending, unacked, err := listener.Lag(ctx, p.generation.Bus, spec.Name)
		if err != nil || pending+unacked <= limit {
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

// limit returns how many events a listener may have to handle: a share of those that the log can keep, by its messages
// and by its bytes; 0: any number.
func (p *pace) limit(ctx context.Context) uint64 {
	stream, err := p.generation.Bus.JetStream().Stream(ctx, bus.StreamEvents)
	if err != nil {
		return 0
	}
	info := stream.CachedInfo()
	limit := uint64(0)
	if most := info.Config.MaxMsgs; most > 0 {
		limit = uint64(most) / logShare
	}
	if most := info.Config.MaxBytes; most > 0 && info.State.Msgs > 0 {
		average := max(1, info.State.Bytes/info.State.Msgs)
		if byBytes := uint64(most) / average / logShare; limit == 0 || byBytes < limit {
			limit = max(1, byBytes)
		}
	}
	return limit
}
