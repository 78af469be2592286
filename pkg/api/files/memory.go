package files

import (
	"cmp"
	"context"
	"sync"
	"time"

	"belfry/pkg/errs"
)

// Limits of the memory of uploads in flight. A client may take hours for an upload, and the storage may hold a part of
// it in memory all that time.
const (
	uploadMemory = 256 << 20 // of all uploads of the process, by default
	addressPart  = 4         // of it, the uploads of one address

	memoryPatience = 20 * time.Second // how long an upload waits for memory
)

// Memory bounds the memory of uploads in flight. It is safe for concurrent use.
type Memory struct {
	total, share int64 // in bytes: of all, of one address
	patience     time.Duration

	mu        sync.Mutex
	used      int64
	byAddress map[string]int64
	freed     chan struct{} // closed when bytes are released
}

// NewMemory returns the memory of a process, so many bytes of all uploads; 0: the default.
func NewMemory(total int64) *Memory {
	total = cmp.Or(total, uploadMemory)
	return newMemory(total, total/addressPart, memoryPatience)
}

// Used returns how many bytes are reserved, and how many can be.
func (m *Memory) Used() (used, total int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used, m.total
}

func newMemory(total, share int64, patience time.Duration) *Memory {
	return &Memory{total: total, share: share, patience: patience, byAddress: map[string]int64{},
		freed: make(chan struct{})}
}

// reserve reserves bytes for an upload of an address. If they are not free at once it calls check, whose error ends the
// upload, and waits. The error is Limited if the address uses too many bytes, Unavailable if all addresses together do,
// or Canceled.
func (m *Memory) reserve(ctx context.Context, address string, bytes int64,
	check func() error) (release func(), err error) {
	bytes = min(bytes, m.share)
	release = func() { m.free(address, bytes) }
	freed, err := m.try(address, bytes)
	if err == nil {
		return release, nil
	}
	if err := check(); err != nil {
		return nil, err
	}
	patience := time.NewTimer(m.patience)
	defer patience.Stop()
	for {
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, errs.Wrap(ctx.Err(), errs.Canceled, "the upload ended before it began")
		case <-patience.C:
			return nil, err
		}
		if freed, err = m.try(address, bytes); err == nil {
			return release, nil
		}
	}
}

// try reserves at once. Otherwise it returns a channel that is closed when bytes are released, and the error for an
// upload that can't wait any longer.
func (m *Memory) try(address string, bytes int64) (<-chan struct{}, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.byAddress[address]+bytes > m.share:
		return m.freed, &errs.Error{Kind: errs.Limited, RetryAfter: m.patience,
			Message: "too many uploads from your address are in flight: send fewer at once, or try again later"}
	case m.used+bytes > m.total:
		return m.freed, &errs.Error{Kind: errs.Unavailable, RetryAfter: m.patience,
			Message: "too many uploads are in flight: try again later"}
	}
	m.used += bytes
	m.byAddress[address] += bytes
	return nil, nil
}

// budget is the memory that the uploads of an address may use besides what they have reserved, as a driver.Budget.
// Half of each limit is left for uploads that begin, which need memory before they can send anything.
type budget struct {
	memory  *Memory
	address string
}

// TryReserve implements driver.Budget.
func (b budget) TryReserve(bytes int64) bool {
	m := b.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byAddress[b.address]+bytes > m.share/2 || m.used+bytes > m.total/2 {
		return false
	}
	m.used += bytes
	m.byAddress[b.address] += bytes
	return true
}

// Release implements driver.Budget.
func (b budget) Release(bytes int64) { b.memory.free(b.address, bytes) }

func (m *Memory) free(address string, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used -= bytes
	if m.byAddress[address] -= bytes; m.byAddress[address] == 0 {
		delete(m.byAddress, address)
	}
	close(m.freed)
	m.freed = make(chan struct{})
}
