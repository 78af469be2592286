package s3storage_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"

	"belfry/pkg/binary/s3storage"
	"belfry/test/backing"
)

// heap measures the memory in use while bytes are written to it.
type heap struct {
	mu          sync.Mutex
	base, most  uint64
	sinceLooked int
}

// watch begins with a heap that is collected as often as by default, until the test ends.
func watch(t *testing.T) *heap {
	t.Helper()
	percent := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return &heap{base: m.HeapInuse}
}

func (h *heap) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sinceLooked += len(p); h.sinceLooked > 4<<20 {
		h.sinceLooked = 0
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		h.most = max(h.most, m.HeapInuse)
	}
	return len(p), nil
}

func (h *heap) grew() int64 { return int64(h.most) - int64(h.base) }

// Two contents of 40 MiB are uploaded at the same time, in segments of 20 MiB, and
// then read.
func TestMemoryDoesNotGrowWithTheContent(t *testing.T) {
	const (
		size  = 40<<20 + 12345
		bound = 48 << 20
	)
	s := open(t, options(backing.S3(t)))
	s.SetSegmentParts(4)
	hashes := make([]string, 2)
	pass := func(act func(i int, h *heap) error) {
		t.Helper()
		h := watch(t)
		var group sync.WaitGroup
		failures := make([]error, len(hashes))
		for i := range hashes {
			group.Go(func() { failures[i] = act(i, h) })
		}
		group.Wait()
		for _, err := range failures {
			must(t, err)
		}
		if h.most == 0 || h.grew() > bound {
			t.Errorf("memory in use grew by %d MiB, want at most %d", h.grew()>>20, bound>>20)
		}
	}
	pass(func(i int, h *heap) error {
		g, err := s.Stage(t.Context())
		if err != nil {
			return err
		}
		defer g.Discard()
		sum := sha256.New()
		source := io.LimitReader(rand.NewChaCha8([32]byte{byte(i)}), size)
		if _, err := io.Copy(io.MultiWriter(g, sum, h), source); err != nil {
			return err
		}
		hashes[i] = hex.EncodeToString(sum.Sum(nil))
		return g.Commit(t.Context(), hashes[i])
	})
	pass(func(i int, h *heap) error {
		r, err := s.Open(t.Context(), hashes[i], 0, -1)
		if err != nil {
			return err
		}
		defer func() { _ = r.Close() }()
		sum := sha256.New()
		n, err := io.Copy(io.MultiWriter(sum, h), r)
		if err == nil && (n != size || hex.EncodeToString(sum.Sum(nil)) != hashes[i]) {
			err = fmt.Errorf("%d bytes came out that are not the %d that came in", n, size)
		}
		return err
	})
	tidies(t, s, 0)
}

func TestManySmallUploadsNeedLittleMemory(t *testing.T) {
	const stages, each, bound = 1000, 4096, 128 << 20
	s := open(t, options(backing.S3(t)))
	h := watch(t)
	for i := range stages {
		stage(t, s, random(fmt.Sprint(i), each))
	}
	_, _ = h.Write(make([]byte, s3storage.PartSize)) // measure
	if h.most == 0 || h.grew() > bound {
		t.Errorf("%d stages of %d bytes hold %d MiB, want at most %d", stages, each, h.grew()>>20, bound>>20)
	}
}
