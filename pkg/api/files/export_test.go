package files

import (
	"context"

	"belfry/pkg/binary/driver"
)

// NewMemoryOf returns a memory with limits of a test.
var NewMemoryOf = newMemory

// BudgetOf returns the memory of an address for several parts at once.
func BudgetOf(m *Memory, address string) driver.Budget { return budget{m, address} }

// Reserve reserves memory for an upload.
func Reserve(ctx context.Context, m *Memory, address string, bytes int64,
	check func() error) (release func(), err error) {
	return m.reserve(ctx, address, bytes, check)
}
