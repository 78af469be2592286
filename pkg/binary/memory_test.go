package binary_test

import (
	"bytes"
	"context"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"belfry/pkg/binary/binarytest"
	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

// memory is a storage in memory, whose clock tests set.
type memory struct {
	mu       sync.Mutex
	contents map[string]kept
	now      func() time.Time
}

type kept struct {
	data     []byte
	modified time.Time
}

func newMemory(now func() time.Time) *memory { return &memory{contents: map[string]kept{}, now: now} }

func TestMemoryIsAStorage(t *testing.T) {
	binarytest.RunConformanceTests(t, func(*testing.T) binarytest.Harness {
		m := newMemory(time.Now)
		return binarytest.Harness{Open: func(context.Context) (driver.Storage, error) { return m, nil }}
	})
}

func (m *memory) Stage(ctx context.Context) (driver.Staged, error) {
	return &memoryStage{m: m}, ctx.Err()
}

func (m *memory) Stat(ctx context.Context, hash string) (driver.Info, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.contents[hash]
	return driver.Info{Hash: hash, Size: int64(len(c.data)), Modified: c.modified}, ok && ctx.Err() == nil, ctx.Err()
}

func (m *memory) Open(ctx context.Context, hash string, offset, length int64) (io.ReadCloser, error) {
	info, found, err := m.Stat(ctx, hash)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, ok := m.contents[hash]; ok && found {
		end := info.Size
		if length >= 0 {
			end = min(end, offset+length)
		}
		return &memoryReader{ctx: ctx, Reader: bytes.NewReader(c.data[offset:end])}, nil
	}
	return nil, errs.New(errs.NotFound, "there is no content %s", hash)
}

type memoryReader struct {
	ctx context.Context
	*bytes.Reader
}

func (r *memoryReader) Read(data []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(data)
}

func (r *memoryReader) Close() error { return nil }

func (m *memory) Delete(ctx context.Context, hash string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.contents, hash)
	return nil
}

func (m *memory) List(ctx context.Context, after string, limit int) (contents []driver.Info, next string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, hash := range slices.Sorted(maps.Keys(m.contents)) {
		if hash <= after {
			continue
		}
		if len(contents) == limit {
			return contents, contents[limit-1].Hash, nil
		}
		c := m.contents[hash]
		contents = append(contents, driver.Info{Hash: hash, Size: int64(len(c.data)), Modified: c.modified})
	}
	return contents, "", nil
}

func (m *memory) RemoveAbandoned(ctx context.Context, _ time.Time) (int, error) { return 0, ctx.Err() }
func (m *memory) Ping(ctx context.Context) error                                { return ctx.Err() }
func (m *memory) Close() error                                                  { return nil }

type memoryStage struct {
	m    *memory
	data bytes.Buffer
}

func (s *memoryStage) Write(data []byte) (int, error) { return s.data.Write(data) }

func (s *memoryStage) Commit(ctx context.Context, hash string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !driver.ValidHash(hash) {
		return errs.New(errs.Internal, "%q is no hash", hash)
	}
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.m.contents[hash] = kept{data: bytes.Clone(s.data.Bytes()), modified: s.m.now()}
	return nil
}

func (s *memoryStage) Discard() {}
