package route

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"regexp"
	"time"

	"github.com/nats-io/nats.go"
)

// heartbeat says that a process shares targets.
type heartbeat struct {
	ID         string `json:"id"`
	Definition string `json:"definition"`
	Leaving    bool   `json:"leaving,omitempty"` // it no longer shares targets
}

// member is another process.
type member struct{ lastHeartbeat time.Time }

// candidate is a member among which owners are chosen.
type candidate struct {
	id   string
	hash uint64
}

// validID is the form of an id, which is part of a subject.
var validID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func (g *Group) isOther(id string) bool {
	return id != g.id && id != everyone && validID.MatchString(id)
}

// announce sends a heartbeat.
func (g *Group) announce() {
	g.mu.Lock()
	h := heartbeat{ID: g.id, Definition: g.opts.Definition, Leaving: g.left}
	g.announced = time.Now()
	g.mu.Unlock()
	if data, err := json.Marshal(h); err == nil && g.conn.IsConnected() {
		_ = g.conn.Publish(prefix+everyone, data) // the next one comes soon
	}
}

// receiveHeartbeat records another process. One that is new is sent a heartbeat, so that it need not wait for the
// next one.
func (g *Group) receiveHeartbeat(m *nats.Msg) {
	var h heartbeat
	if json.Unmarshal(m.Data, &h) != nil {
		return
	}
	if g.note(h, time.Now()) {
		g.announce()
	}
}

// note reports whether this process should announce itself.
func (g *Group) note(h heartbeat, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	known := g.members[h.ID]
	switch {
	case h.ID == g.id:
		if !g.receivesItself {
			g.receivesItself = true
			g.publishMembers()
		}
	case !g.isOther(h.ID):
	case h.Leaving || h.Definition != g.opts.Definition:
		g.remove(h.ID)
	case known != nil:
		known.lastHeartbeat = now
	case len(g.members) < maxMembers:
		g.members[h.ID] = &member{lastHeartbeat: now}
		g.publishMembers()
		return now.Sub(g.announced) > g.opts.Heartbeat/10
	}
	return false
}

// remove must be called with the lock held.
func (g *Group) remove(id string) {
	if g.members[id] != nil {
		delete(g.members, id)
		g.publishMembers()
	}
}

// watch forgets members without heartbeats, fails rounds whose owners are silent, and reports those that run here,
// until ctx ends.
func (g *Group) watch(ctx context.Context) {
	ticker := time.NewTicker(g.opts.Heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			g.expire(time.Now())
			g.reportPending()
		}
	}
}

func (g *Group) expire(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, m := range g.members {
		if now.Sub(m.lastHeartbeat) > g.opts.Expiry {
			g.remove(id)
		}
	}
	for _, f := range g.pending {
		if now.Sub(f.reported) > g.opts.Silence {
			g.silent.Do(func() {
				g.log.Warn("another process does not report the rounds of mappings that it was asked for; this one "+
					"runs them", "worker", f.owner)
			})
			g.settle(f, errSilent)
		}
	}
}

// publishMembers must be called after each change of members, with the lock held. A process that does not receive its
// own heartbeats can't be asked for anything, or can't ask, so it does not share targets.
func (g *Group) publishMembers() {
	var all []candidate
	if !g.receivesItself {
		g.others.Store(&all)
		return
	}
	for id := range g.members {
		all = append(all, candidate{id, hashOf(id)})
	}
	g.others.Store(&all)
	g.log.Debug("the workers that share targets have changed", "workers", 1+len(all))
}

// owner is the process that has the highest score for a target; "" for this one. When a process joins or leaves, no
// target moves between two others.
func (g *Group) owner(r *Round) string {
	others := g.others.Load()
	if others == nil || len(*others) == 0 {
		return ""
	}
	key := hashOf(r.Target) + uint64(r.Mapping) //nolint:gosec // a small number
	best, highest := candidate{g.id, g.hash}, mix(g.hash^key)
	for _, c := range *others {
		if score := mix(c.hash ^ key); score > highest || score == highest && c.id > best.id {
			best, highest = c, score
		}
	}
	if best.id == g.id {
		return ""
	}
	return best.id
}

func hashOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // never fails
	return mix(h.Sum64())
}

// mix is the finalizer of SplitMix64: each bit of the result depends on all bits of x.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
