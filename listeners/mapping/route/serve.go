package route

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/nats-io/nats.go"
)

// receive takes rounds that another process asks for, and its reports about the rounds of this one.
func (g *Group) receive(m *nats.Msg) {
	var received message
	if json.Unmarshal(m.Data, &received) != nil || !g.isOther(received.From) {
		return
	}
	g.reported(&received)
	for _, r := range received.Rounds {
		if g.accept(received.From, received.Definition, r.ID) {
			g.opts.Run(r.Round, func(err error) { g.ended(received.From, r.ID, err) })
		}
	}
}

// accept reports whether this process runs a round for another one. If not, it says so at once: the round does not run,
// so that the other one need not wait. A process that takes itself for the owner of the same target does not matter
// here.
func (g *Group) accept(from, definition string, id uint64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.served[from][id]; known {
		return false
	}
	if g.left || definition != g.opts.Definition || g.servedNow >= maxServed {
		box := g.outbox(from)
		box.failed = append(box.failed, id)
		return false
	}
	if g.served[from] == nil {
		g.served[from] = map[uint64]struct{}{}
	}
	g.served[from][id] = struct{}{}
	g.servedNow++
	return true
}

// ended reports the end of a round to the process that has asked for it. Not before: a process that runs a round
// itself, and acknowledges its event, relies on that the round that it has asked for has ended.
func (g *Group) ended(from string, id uint64, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if delete(g.served[from], id); len(g.served[from]) == 0 {
		delete(g.served, from)
	}
	g.servedNow--
	g.counts.served.Add(1)
	box := g.outbox(from)
	if err == nil {
		box.done = append(box.done, id)
	} else {
		box.failed = append(box.failed, id)
	}
	if g.idle != nil && g.servedNow == 0 {
		close(g.idle)
		g.idle = nil
	}
}

// reportPending asks the processes that wait for rounds that run here to keep waiting.
func (g *Group) reportPending() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for from, ids := range g.served {
		g.outbox(from).pending = slices.Collect(maps.Keys(ids))
	}
}
