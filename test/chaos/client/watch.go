package client

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"belfry/test/chaos/history"
)

// Of a write that takes long, as when a disk syncs slowly, others must see nothing until it can't be undone. Few
// of the random reads meet one, so a client looks for them.

const (
	slow     = 20 * time.Millisecond // from here on a write takes long
	looks    = 2                     // reads of an object during one write
	lookEach = 5 * time.Millisecond
)

// writing has the objects that are being written.
type writing struct {
	mu      sync.Mutex
	objects map[history.Object]*slowWrite
}

type slowWrite struct {
	since time.Time
	looks int
}

// begin records that a write of an object begins; what it returns, that it ends.
func (w *writing) begin(o history.Object) (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.objects == nil {
		w.objects = map[history.Object]*slowWrite{}
	}
	mine := &slowWrite{since: time.Now()}
	w.objects[o] = mine // of several writes the last
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.objects[o] == mine {
			delete(w.objects, o)
		}
	}
}

// next returns an object to look at.
func (w *writing) next() (o history.Object, there bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for o, s := range w.objects {
		if time.Since(s.since) > slow && s.looks < looks {
			s.looks++
			return o, true
		}
	}
	return o, false
}

// watch reads objects whose write takes long, until done is closed.
func (p *Pool) watch(ctx context.Context, seed uint64, done <-chan struct{}) {
	c := &client{
		Pool: p, number: p.Clients + 1, prefix: p.Tag + "-" + strconv.FormatUint(seed, 10) + "-watch",
		rand: rand.New(rand.NewPCG(seed, 1<<33)),
	}
	for n := 0; ; n++ {
		c.front = p.Deployment.Fronts[n%len(p.Deployment.Fronts)]
		if o, there := p.writing.next(); there {
			c.do(ctx, history.Op{Object: o, Kind: history.Get})
		}
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case <-time.After(lookEach):
		}
	}
}
