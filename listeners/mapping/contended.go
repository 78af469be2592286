package mapping

import (
	"maps"
	"sync"
	"time"
)

// A target counts as contended for so long after the last event of it.
const contendedFor = time.Minute

// maxContended is how many targets are remembered; others have conflicts.
const maxContended = 10_000

// contended are the arrays that somebody else wrote during a round of this process. A round of any other is run where its event
// was delivered: most targets have few events at a time, and then another process would only delay them.
type contended struct {
	mu    sync.Mutex
	until map[group]time.Time
}

// add takes note of a conflict.
func (c *contended) add(g group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if len(c.until) >= maxContended {
		maps.DeleteFunc(c.until, func(_ group, until time.Time) bool { return now.After(until) })
	}
	if len(c.until) >= maxContended {
		return
	}
	if c.until == nil {
		c.until = map[group]time.Time{}
	}
	c.until[g] = now.Add(contendedFor)
}

// has reports whether an array is contended, and has it stay so.
func (c *contended) has(g group) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	until, known := c.until[g]
	if !known {
		return false
	}
	now := time.Now()
	if now.After(until) {
		delete(c.until, g)
		return false
	}
	c.until[g] = now.Add(contendedFor)
	return true
}
