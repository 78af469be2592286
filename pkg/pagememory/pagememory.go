// Package pagememory bounds the memory of lists in flight, over HTTP and over the bus
// together. A page is in memory until its client has read it, so clients that read slowly,
// or not at all, hold what they were sent.
package pagememory

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"belfry/pkg/errs"
)

// Limits of the memory of lists in flight.
const (
	listBytes    = 24 << 20  // of all lists of the process, by default
	clientPart   = 3         // of them, the lists of one client
	minPageBytes = 128 << 10 // of a page: with less memory than this a list waits

	defaultPatience = 5 * time.Second // how long a list waits for memory
)

// Budget bounds the memory of lists in flight. The less of it is left, the fewer bytes
// the pages have: a page that ends early has a cursor. It is safe for concurrent use.
type Budget struct {
	total, share int // in bytes: of all, of one client
	maxPage      int
	patience     time.Duration

	mu       sync.Mutex
	used     int
	byClient map[string]int
	freed    chan struct{} // closed when bytes are released
}

// New returns the budget of a process whose pages have at most so many bytes.
func New(maxPage int) *Budget { return NewOf(listBytes, maxPage) }

// NewOf is New with so many bytes for all lists.
func NewOf(total, maxPage int) *Budget {
	return &Budget{total: total, share: total / clientPart, maxPage: maxPage, patience: defaultPatience,
		byClient: map[string]int{}, freed: make(chan struct{})}
}

// NewWithPatience returns a budget in which a list waits so long for memory.
func NewWithPatience(maxPage int, patience time.Duration) *Budget {
	b := New(maxPage)
	b.patience = patience
	return b
}

// Used returns how many bytes are reserved, and how many can be.
func (b *Budget) Used() (used, total int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used, b.total
}

// Reservation is the memory of one list in flight.
type Reservation struct {
	budget *Budget
	client string
	bytes  int
	page   int
}

// Page returns how many bytes the page may have.
func (r *Reservation) Page() int { return r.page }

// Reserve waits until there is memory for a page and reserves what the page is expected to
// take. A client is a network address or, over the bus, who is taken for the sender.
// Errors: Unavailable or Limited when none is released in time; Canceled.
func (b *Budget) Reserve(ctx context.Context, client string, expected int) (*Reservation, error) {
	end := time.NewTimer(b.patience)
	defer end.Stop()
	for {
		r, freed, err := b.try(client, expected)
		if err == nil {
			return r, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-end.C:
			return nil, err
		}
	}
}

// Try reserves as Reserve does, without waiting.
func (b *Budget) Try(client string, expected int) (*Reservation, error) {
	r, _, err := b.try(client, expected)
	return r, err
}

// try reserves at once, or returns the error of a list that waited in vain and a channel
// that is closed when it is worth trying again. A page gets a quarter of what is left, so
// that others get some as well.
func (b *Budget) try(client string, expected int) (*Reservation, <-chan struct{}, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	free, own := b.total-b.used, b.share-b.byClient[client]
	switch {
	case free < minPageBytes:
		return nil, b.freed, &errs.Error{Kind: errs.Unavailable, RetryAfter: b.patience,
			Message: "too many lists are being sent to clients that read slowly: try again later"}
	case own < minPageBytes:
		return nil, b.freed, &errs.Error{Kind: errs.Limited, RetryAfter: b.patience,
			Message: "too many lists are being sent to you: read their replies, or try again later"}
	}
	page := min(max(min(free, own)/4, minPageBytes), b.maxPage)
	r := &Reservation{budget: b, client: client, bytes: min(page, expected), page: page}
	b.add(client, r.bytes)
	return r, nil, nil
}

// add changes what is used; the lock is held.
func (b *Budget) add(client string, n int) {
	b.used += n
	if b.byClient[client] += n; b.byClient[client] == 0 {
		delete(b.byClient, client)
	}
	if n < 0 {
		close(b.freed)
		b.freed = make(chan struct{})
	}
}

// Resize sets how many bytes are used: those of the page, which may be more than was
// expected.
func (r *Reservation) Resize(n int) {
	r.budget.mu.Lock()
	defer r.budget.mu.Unlock()
	r.budget.add(r.client, n-r.bytes)
	r.bytes = n
}

// Release ends the reservation.
func (r *Reservation) Release() { r.Resize(0) }

// Sizes remembers how large the objects of a list are, so that a list of small objects
// reserves little, and many run at once. It is safe for concurrent use.
type Sizes struct {
	object atomic.Int64 // bytes of an object of a recent page, on average; 0: none yet
}

// Note notes a page.
func (s *Sizes) Note(bytes, objects int) {
	if objects > 0 {
		s.object.Store(int64(bytes/objects) + 1)
	}
}

// Expected returns how many bytes a page of so many objects is likely to have, of a list
// whose pages have at most maxPage.
func (s *Sizes) Expected(objects, maxPage int) int {
	size := int(s.object.Load())
	if size == 0 {
		return maxPage
	}
	return min(objects*size, maxPage)
}
