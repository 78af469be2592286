package files

import "context"

// NewMemoryOf returns a memory with limits of a test.
var NewMemoryOf = newMemory

// Reserve reserves memory for an upload.
func Reserve(ctx context.Context, m *Memory, address string, bytes int64,
	check func() error) (release func(), err error) {
	return m.reserve(ctx, address, bytes, check)
}
