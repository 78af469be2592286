package ratelimit

import (
	"fmt"
	"testing"
	"time"
)

// A flood of clients must neither fill the memory nor give a client that has used up its
// tokens new ones.
func TestAFloodOfClientsIsBoundedAndFreesNobody(t *testing.T) {
	const keys = 40 * shards
	now := time.Now()
	c := newClients(1, keys)
	for range c.Burst() {
		c.Bucket("limited", now).Take(now)
	}
	for i := range 5 * keys {
		c.Bucket(fmt.Sprint(i), now).Take(now)
	}
	if n := c.Len(); n > keys {
		t.Errorf("%d clients are remembered", n)
	}
	if c.Bucket("limited", now).Take(now) == 0 {
		t.Error("a client that had used up its tokens has new ones")
	}
	if n := NewClients(1).max * shards; n > MaxKeys {
		t.Errorf("%d clients are remembered by default", n)
	}
}

// Len is the number of clients that are remembered.
func (c *Clients) Len() (n int) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		n += len(s.buckets)
		s.mu.Unlock()
	}
	return n
}
