package s3storage

import "sync"

// ownBudget is the memory of stages without a budget, those of programs that copy
// contents: eight parts in flight, besides one of each stage.
const ownBudget = 8 * partSize

// budget is a driver.Budget.
type budget struct {
	mu   sync.Mutex
	free int64
}

// TryReserve implements driver.Budget.
func (b *budget) TryReserve(bytes int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if bytes > b.free {
		return false
	}
	b.free -= bytes
	return true
}

// Release implements driver.Budget.
func (b *budget) Release(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += bytes
}
