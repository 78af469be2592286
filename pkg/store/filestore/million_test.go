package filestore

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/store/driver"
)

// BenchmarkMillion puts and clears a million records and reports what then
// counts: how long Pending, Open and Count take, and how much memory stays.
func BenchmarkMillion(b *testing.B) {
	const records = 1_000_000
	ctx := context.Background()
	folder := b.TempDir()
	for range b.N {
		backend, s := openBench(b, folder)
		b.ReportMetric(residentMiB(b), "MiB-empty")
		var revision atomic.Uint64
		var left atomic.Int64
		left.Store(records)
		began := time.Now()
		done := make(chan error)
		for range 64 {
			go func() { done <- putAndClear(s, &revision, &left) }()
		}
		for range 64 {
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(records/time.Since(began).Seconds(), "puts/s")
		b.ReportMetric(residentMiB(b), "MiB-written")
		b.ReportMetric(pendingTime(b, s), "µs-pending")
		b.ReportMetric(pendingTime(b, s), "µs-pending-again")
		b.ReportMetric(float64(backend.Metrics().DiskBytes)/(1<<20), "MiB-disk")
		if err := backend.Close(); err != nil {
			b.Fatal(err)
		}
		began = time.Now()
		backend, s = openBench(b, folder)
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms-open")
		b.ReportMetric(pendingTime(b, s), "µs-pending-opened")
		if n, _, err := s.Count(ctx); n != records || err != nil {
			b.Fatalf("counted %d, error %v", n, err)
		}
		if err := backend.Close(); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
	}
}

func openBench(b *testing.B, folder string) (*Backend, *store) {
	b.Helper()
	backend, err := Open(folder, Options{})
	if err != nil {
		b.Fatal(err)
	}
	s, err := backend.Open(context.Background(), driver.Spec{Name: "Books"})
	if err != nil {
		b.Fatal(err)
	}
	return backend, s.(*store)
}

func putAndClear(s *store, revision *atomic.Uint64, left *atomic.Int64) error {
	ctx := context.Background()
	for left.Add(-1) >= 0 {
		w := benchWrite(revision)
		if err := s.Put(ctx, w); err != nil {
			return err
		}
		if err := s.Clear(ctx, []driver.Pending{{UUID: w.UUID, Revision: w.Revision}}); err != nil {
			return err
		}
	}
	return nil
}

func pendingTime(b *testing.B, s *store) float64 {
	b.Helper()
	began := time.Now()
	events, _, err := s.Pending(context.Background(), nil, 100)
	if err != nil || len(events) > 0 {
		b.Fatalf("%d events wait, error %v", len(events), err)
	}
	return float64(time.Since(began).Microseconds())
}

// residentMiB is the memory that the process occupies.
func residentMiB(b *testing.B) float64 {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	fields := strings.Fields(rest)
	kib := 0.0
	for _, digit := range fields[0] {
		kib = kib*10 + float64(digit-'0')
	}
	return kib / 1024
}
