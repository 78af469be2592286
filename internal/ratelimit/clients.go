package ratelimit

import (
	"hash/maphash"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Window is how long an idle client's bucket takes to fill. A full bucket has the tokens
// of so many seconds.
const Window = 10 * time.Second

const (
	shards = 32 // each with its lock, for requests that are handled at once

	// sample is how many buckets of a full shard are compared to find the one to drop.
	sample = 16
)

// Clients keeps one token bucket per client, for up to MaxKeys clients in memory. When it
// is full, a new client replaces an idle one or, of a sample, the one that has used the
// fewest tokens. Clients without tokens therefore stay: to be forgotten, a client would
// have to use up the tokens of about MaxKeys others first. It is safe for concurrent use.
type Clients struct {
	perSecond int
	burst     int
	seed      maphash.Seed
	max       int // of a shard
	shards    [shards]shard
}

type shard struct {
	mu      sync.Mutex
	buckets map[string]*rate.Limiter
}

// NewClients returns Clients with the tokens that each gets a second; it must be above 0.
func NewClients(perSecond int) *Clients { return newClients(perSecond, MaxKeys) }

func newClients(perSecond, keys int) *Clients {
	c := &Clients{
		perSecond: perSecond, burst: perSecond * int(Window/time.Second), seed: maphash.MakeSeed(), max: keys / shards,
	}
	for i := range c.shards {
		c.shards[i].buckets = map[string]*rate.Limiter{}
	}
	return c
}

// Continue returns Clients with the tokens that each gets a second: the same, if they have as many, so that nobody gets
// more by a change elsewhere. c may be nil, and so is the result without tokens.
func (c *Clients) Continue(perSecond int) *Clients {
	switch {
	case perSecond <= 0:
		return nil
	case c != nil && c.perSecond == perSecond:
		return c
	}
	return NewClients(perSecond)
}

// PerSecond returns how many tokens a client gets a second.
func (c *Clients) PerSecond() int { return c.perSecond }

// Burst returns how many tokens a client has at most.
func (c *Clients) Burst() int { return c.burst }

// Bucket returns the bucket of a client.
func (c *Clients) Bucket(key string, now time.Time) *Bucket {
	s := &c.shards[maphash.String(c.seed, key)%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[key]
	if b == nil {
		if len(s.buckets) >= c.max {
			s.evict(now, float64(c.burst))
		}
		b = rate.NewLimiter(rate.Limit(c.perSecond), c.burst)
		s.buckets[key] = b
	}
	return (*Bucket)(b)
}

// evict drops the fullest bucket of a sample. A full one is as good as none.
func (s *shard) evict(now time.Time, full float64) {
	var fullest string
	most, read := math.Inf(-1), 0
	for key, b := range s.buckets { // begins anywhere
		if tokens := b.TokensAt(now); tokens > most {
			fullest, most = key, tokens
		}
		if read++; most >= full || read == sample {
			break
		}
	}
	delete(s.buckets, fullest)
}

// Bucket is the tokens of one client. It is safe for concurrent use.
type Bucket rate.Limiter

// Take takes a token. If the bucket is empty, it returns how long the next token takes;
// otherwise wait is 0.
func (b *Bucket) Take(now time.Time) (wait time.Duration) {
	l := (*rate.Limiter)(b)
	if l.AllowN(now, 1) {
		return 0
	}
	return b.until(now, 1)
}

// Debt returns how long it takes until the charged tokens are paid; 0 without debt.
func (b *Bucket) Debt(now time.Time) time.Duration {
	if (*rate.Limiter)(b).TokensAt(now) > 0 {
		return 0
	}
	return b.until(now, 1)
}

func (b *Bucket) until(now time.Time, tokens float64) time.Duration {
	l := (*rate.Limiter)(b)
	missing := tokens - l.TokensAt(now)
	return max(1, time.Duration(missing/float64(l.Limit())*float64(time.Second)))
}

// Left returns how many tokens are left.
func (b *Bucket) Left(now time.Time) int { return int(max(0, (*rate.Limiter)(b).TokensAt(now))) }

// Charge takes n tokens, or as many as a bucket has at most, whether they are there or not.
// It returns how long it takes until none is owed.
func (b *Bucket) Charge(now time.Time, n int) time.Duration {
	l := (*rate.Limiter)(b)
	return l.ReserveN(now, min(n, l.Burst())).DelayFrom(now)
}
