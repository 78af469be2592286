package httpkit

import (
	"sync"
	"time"

	"belfry/internal/ratelimit"
	"belfry/pkg/errs"
)

// Limits of the memory of bodies that are being read. A body of a few kilobytes, as most have, does not count.
const (
	bodyBytes    = 128 << 20 // of the process
	addressBytes = 16 << 20  // of one network address
	freeBytes    = 8 << 10   // of a body

	bodyRetry = 5 * time.Second
)

// bodies limits the memory of bodies that are being read: a client that sends one slowly, or not to its end, holds its
// memory. It is safe for concurrent use.
type bodies struct {
	total, share int64

	mu        sync.Mutex
	used      int64
	byAddress map[string]int64
}

// newBodies returns the bounds of a process whose bodies have at most so many bytes each. An address can always send
// two of them.
func newBodies(maxBody int64) *bodies {
	share := max(addressBytes, 2*maxBody)
	return &bodies{total: max(bodyBytes, 4*share), share: share, byAddress: map[string]int64{}}
}

// body is the memory of one body.
type body struct {
	all     *bodies
	address string
	bytes   int64
}

func (b *bodies) begin(address string) *body { return &body{all: b, address: ratelimit.Key(address)} }

// grow reports Limited or Unavailable if a body may not have so many bytes now.
func (b *body) grow(to int) error {
	n := max(0, int64(to)-freeBytes) - b.bytes
	if n <= 0 {
		return nil
	}
	a := b.all
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.byAddress[b.address]+n > a.share:
		return &errs.Error{Kind: errs.Limited,
			RetryAfter: bodyRetry, Message: "too many large bodies are being sent from your network address at once: " +
				"send them one after the other"}
	case a.used+n > a.total:
		return &errs.Error{Kind: errs.Unavailable, RetryAfter: bodyRetry,
			Message: "too many large bodies are being sent at once: try again later"}
	}
	a.used += n
	a.byAddress[b.address] += n
	b.bytes += n
	return nil
}

// end gives the memory back.
func (b *body) end() {
	if b.bytes == 0 {
		return
	}
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	b.all.used -= b.bytes
	if b.all.byAddress[b.address] -= b.bytes; b.all.byAddress[b.address] == 0 {
		delete(b.all.byAddress, b.address)
	}
	b.bytes = 0
}
