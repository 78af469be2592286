package objects

import (
	"context"
	"net/http"
	"sync"
	"time"

	"belfry/pkg/api/kit"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// Limits of the memory of lists in flight. A page is in memory until its client has read
// it, so clients that read slowly, or not at all, hold what they were sent.
const (
	listBytes    = 24 << 20  // of all lists of the process
	addressBytes = 8 << 20   // of the lists of one address
	minPageBytes = 128 << 10 // of a page: with less memory than this a list waits

	listPatience = 5 * time.Second // how long a list waits for memory

	// Within minReadTime and at minReadRate bytes a second a client has to read a page.
	minReadTime = 10 * time.Second
	minReadRate = 64 << 10
)

// Budget bounds the memory of lists in flight. The less of it is left, the fewer bytes
// the pages have: a page that ends early has a cursor. It is safe for concurrent use.
type Budget struct {
	total, share int // in bytes: of all, of one address

	mu        sync.Mutex
	used      int
	byAddress map[string]int
	freed     chan struct{} // closed when bytes are released
}

// NewBudget returns the budget of a process.
func NewBudget() *Budget {
	return &Budget{total: listBytes, share: addressBytes, byAddress: map[string]int{}, freed: make(chan struct{})}
}

// reservation is the memory of one list in flight.
type reservation struct {
	budget  *Budget
	address string
	bytes   int
	page    int // how many bytes the page may have
}

// reserve waits until there is memory for a page and reserves what the page is expected to
// take. Errors: Unavailable or Limited when none is released in time; Canceled.
func (b *Budget) reserve(ctx context.Context, address string, expected int) (*reservation, error) {
	patience := time.NewTimer(listPatience)
	defer patience.Stop()
	for {
		r, freed, err := b.try(address, expected)
		if err == nil {
			return r, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-patience.C:
			return nil, err
		}
	}
}

// try reserves at once, or returns the error of a list that waited in vain and a channel
// that is closed when it is worth trying again. A page gets a quarter of what is left, so
// that others get some as well.
func (b *Budget) try(address string, expected int) (*reservation, <-chan struct{}, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	free, own := b.total-b.used, b.share-b.byAddress[address]
	switch {
	case free < minPageBytes:
		return nil, b.freed, &errs.Error{Kind: errs.Unavailable, RetryAfter: listPatience,
			Message: "too many lists are being sent to clients that read slowly: try again later"}
	case own < minPageBytes:
		return nil, b.freed, &errs.Error{Kind: errs.Limited, RetryAfter: listPatience,
			Message: "too many lists are being sent to your address: read their replies, or try again later"}
	}
	page := min(max(min(free, own)/4, minPageBytes), store.MaxPageBytes)
	r := &reservation{budget: b, address: address, bytes: min(page, expected), page: page}
	b.add(address, r.bytes)
	return r, nil, nil
}

// add changes what is used; the lock is held.
func (b *Budget) add(address string, n int) {
	b.used += n
	if b.byAddress[address] += n; b.byAddress[address] == 0 {
		delete(b.byAddress, address)
	}
	if n < 0 {
		close(b.freed)
		b.freed = make(chan struct{})
	}
}

// resize sets how many bytes are used: those of the page, which may be more than was
// expected.
func (r *reservation) resize(n int) {
	r.budget.mu.Lock()
	defer r.budget.mu.Unlock()
	r.budget.add(r.address, n-r.bytes)
	r.bytes = n
}

// release ends the reservation.
func (r *reservation) release() { r.resize(0) }

// sendPage sends a page to a client that has to read it at a minimal rate.
func sendPage(x *kit.Exchange, body []byte) {
	limit := minReadTime + time.Duration(len(body)/minReadRate)*time.Second
	// Where the connection has no deadlines, that of the server holds.
	_ = http.NewResponseController(x).SetWriteDeadline(time.Now().Add(limit))
	x.Send(http.StatusOK, kit.JSON, body)
}

// expected returns how many bytes a page is likely to have, by the page before.
func (r *resource) expected(limit int) int {
	if limit == 0 {
		limit = store.DefaultPage
	}
	size := int(r.objectBytes.Load())
	if size == 0 {
		return store.MaxPageBytes
	}
	return min(limit*size, store.MaxPageBytes)
}
