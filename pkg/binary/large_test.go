package binary_test

import (
	"context"
	"io"
	"runtime"
	"testing"

	"belfry/pkg/binary"
	"belfry/pkg/binary/driver"
)

// sink is a storage that drops all bytes.
type sink struct{ driver.Storage }

func (sink) Stage(context.Context) (driver.Staged, error) { return sinkStage{}, nil }

type sinkStage struct{}

func (sinkStage) Write(data []byte) (int, error)       { return len(data), nil }
func (sinkStage) Commit(context.Context, string) error { return nil }
func (sinkStage) Discard()                             {}

// zeros is a body of zeros.
type zeros struct{ left int64 }

func (z *zeros) Read(data []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(data)), z.left)
	z.left -= n
	clear(data[:n])
	return int(n), nil
}

// The memory for an upload does not depend on its size.
func TestMemoryOfUploadDoesNotGrowWithItsSize(t *testing.T) {
	const size = 256 << 20
	f := newFixture(t, options{service: func(o *binary.Options) { o.Storage = sink{o.Storage} }})
	book := f.save("Books", `{}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := f.Put(t.Context(), binary.Upload{Place: photo(book, 0), Body: &zeros{size}, Size: size})
	f.must(err)
	runtime.ReadMemStats(&after)
	if got.Size != size {
		t.Errorf("%d bytes were stored", got.Size)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
		t.Errorf("%d bytes of memory were allocated for a binary of %d", used, int64(size))
	}
}
