// Package ratelimit limits how often clients may do something, in bounded memory.
//
// Clients is a token bucket for each of many clients, for limits on requests.
//
// Limiter is a token bucket for each network address, for attempts. It is not a
// golang.org/x/time/rate.Limiter because belfry returns the token of an attempt
// that succeeded, and rate cannot return a token that was taken: its
// Reservation.Cancel restores only future tokens.
package ratelimit

import (
	"net/netip"
	"sync"
	"time"
)

// Limiter allows each network address a number of requests in a period, all of
// which may come at once. It is safe for concurrent use.
type Limiter struct {
	number float64
	period time.Duration
	now    func() time.Time

	mu      sync.Mutex
	buckets *Table[bucket]
}

// bucket holds the tokens that an address had at a time.
type bucket struct {
	tokens float64
	at     time.Time
}

// New makes a limiter of a number a minute; 0 allows everything.
func New(perMinute int, now func() time.Time) *Limiter { return NewIn(perMinute, time.Minute, now) }

// NewIn makes a limiter of a number in a period; 0 allows everything.
func NewIn(number int, period time.Duration, now func() time.Time) *Limiter {
	l := &Limiter{number: float64(number), period: period, now: now}
	l.buckets = NewTable(func(b *bucket) bool { return l.now().Sub(b.at) > period })
	return l
}

// Take takes a token of an address. If none is left, it returns how long the next one
// takes; otherwise wait is 0.
func (l *Limiter) Take(address string) (wait time.Duration) {
	if l.number <= 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucket(address)
	if b.tokens < 1 {
		return max(1, time.Duration((1-b.tokens)/l.number*float64(l.period)))
	}
	b.tokens--
	return 0
}

// Return returns a token that an address has taken.
func (l *Limiter) Return(address string) {
	if l.number <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucket(address)
	b.tokens = min(b.tokens+1, l.number)
}

// bucket returns the bucket of an address, refilled up to now.
func (l *Limiter) bucket(address string) *bucket {
	now := l.now()
	b, created := l.buckets.GetOrCreate(Key(address))
	if created {
		b.tokens = l.number
	} else {
		b.tokens = min(l.number, b.tokens+float64(now.Sub(b.at))/float64(l.period)*l.number)
	}
	b.at = now
	return b
}

// Key is the part of a network address that counts as one client: all of IPv4, and of IPv6 the /64
// that one customer is given.
func Key(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	if ip.Is4() {
		return address // has one spelling
	}
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		return ip.String()
	}
	p, _ := ip.Prefix(64)
	return p.String()
}
