package rounds

import (
	"maps"
	"sync"
	"time"

	"belfry/pkg/store"
)

// A target counts as contended for so long after the last event of it, and all targets of a mapping after many
// conflicts.
const (
	contendedFor     = time.Minute
	allContendedFor  = 10 * time.Second
	conflictWeight   = 16 // of a conflict, beside a round without one
	allContendedFrom = 4 * conflictWeight
)

// maxContended is how many targets are remembered; others have conflicts.
const maxContended = 10_000

// contended are the targets that another process wrote during a round of this process: the round had a conflict. Rounds
// of others run where their event was delivered. Most targets have few events at a time, and forwarding would
// only delay them.
//
// If events of many targets arrive together, for instance in an import, each target would first have its own conflict.
// So when more than one in conflictWeight rounds of a mapping has a conflict, all its targets are contended for a
// while.
type contended struct {
	mu       sync.Mutex
	until    map[Key]time.Time
	swept    time.Time // when expired ones were last removed from until
	mappings map[*store.Mapping]*conflicts
}

// conflicts are those of a mapping's rounds.
type conflicts struct {
	score int       // the weights of conflicts, less the rounds without one
	until time.Time // all its targets are contended
}

// rounded records a round without a conflict.
func (c *contended) rounded(k Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of := c.mappings[k.Mapping]; of != nil && of.score > 0 {
		of.score--
	}
}

// conflict adds a conflict of a mapping. The lock must be held.
func (c *contended) conflict(m *store.Mapping, now time.Time) {
	of := c.mappings[m]
	if of == nil {
		if c.mappings == nil {
			c.mappings = map[*store.Mapping]*conflicts{}
		}
		of = &conflicts{}
		c.mappings[m] = of
	}
	of.score = min(of.score+conflictWeight, 2*allContendedFrom)
	if of.score >= allContendedFrom {
		of.until = now.Add(allContendedFor)
	}
}

// add records a conflict.
func (c *contended) add(k Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.conflict(k.Mapping, now)
	if len(c.until) >= maxContended && now.Sub(c.swept) >= time.Second {
		c.swept = now
		maps.DeleteFunc(c.until, func(_ Key, until time.Time) bool { return now.After(until) })
	}
	if len(c.until) >= maxContended {
		return
	}
	if c.until == nil {
		c.until = map[Key]time.Time{}
	}
	c.until[k] = now.Add(contendedFor)
}

// has reports whether a target is contended, and has it stay so.
func (c *contended) has(k Key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if until, known := c.until[k]; known {
		if !now.After(until) {
			c.until[k] = now.Add(contendedFor)
			return true
		}
		delete(c.until, k)
	}
	of := c.mappings[k.Mapping]
	return of != nil && now.Before(of.until)
}
