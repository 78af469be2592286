package filestore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"belfry/pkg/object"
	"belfry/pkg/store/driver"
)

// benchBody is an object of about 400 bytes.
var benchBody = []byte(`{"uuid":"01234567-89ab-cdef-0123-456789abcdef","text":"` + strings.Repeat("lorem ipsum ", 28) +
	`"}`)

// benchPayload is the envelope of its event.
var benchPayload = append([]byte(strings.Repeat("envelope ", 30)), benchBody...)

const benchSubject = "events.7.Store.Saved.Books.01234567-89ab-cdef-0123-456789abcdef"

func benchWrite(revision *atomic.Uint64) driver.Write {
	return driver.Write{
		UUID:     object.NewUUID(),
		Revision: revision.Add(1),
		Body:     benchBody,
		Event:    driver.Event{ID: object.NewUUID(), Subject: benchSubject, Payload: benchPayload},
	}
}

func benchStore(b *testing.B) (*Backend, *store) {
	b.Helper()
	backend, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = backend.Close() })
	s, err := backend.Open(context.Background(), driver.Spec{Name: "Books"})
	if err != nil {
		b.Fatal(err)
	}
	return backend, s.(*store)
}

// BenchmarkPut compares a Put with the least that Pebble can do to keep the
// same bytes: one Set, synced, and with the least that keeps record and event
// apart: two Sets in a batch.
func BenchmarkPut(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("writers=%d/bare", writers), func(b *testing.B) { benchBare(b, writers) })
		b.Run(fmt.Sprintf("writers=%d/two", writers), func(b *testing.B) { benchTwoSets(b, writers) })
		b.Run(fmt.Sprintf("writers=%d/put", writers), func(b *testing.B) { benchPut(b, writers, false) })
		b.Run(fmt.Sprintf("writers=%d/put+clear", writers), func(b *testing.B) { benchPut(b, writers, true) })
	}
}

func benchBare(b *testing.B, writers int) {
	backend, _ := benchStore(b)
	value := append(append([]byte(benchSubject), benchBody...), benchPayload...)
	parallel(b, writers, func() error {
		return backend.db.Set([]byte(object.NewUUID()), value, pebble.Sync)
	})
}

// benchTwoSets keeps the same bytes where they belong: a record and an event.
func benchTwoSets(b *testing.B, writers int) {
	backend, s := benchStore(b)
	var revision atomic.Uint64
	parallel(b, writers, func() error {
		w := benchWrite(&revision)
		batch := backend.db.NewBatch()
		if err := setRecord(batch, s.id, w.UUID, stored{revision: w.Revision, body: w.Body}); err != nil {
			return err
		}
		if err := setEvent(batch, s.id, w.UUID, w.Revision, &w.Event); err != nil {
			return err
		}
		return errors.Join(batch.Commit(pebble.Sync), batch.Close())
	})
}

func benchPut(b *testing.B, writers int, clear bool) {
	_, s := benchStore(b)
	var revision atomic.Uint64
	parallel(b, writers, func() error {
		w := benchWrite(&revision)
		err := s.Put(context.Background(), w)
		if err == nil && clear {
			err = s.Clear(context.Background(), []driver.Pending{{Event: w.Event, UUID: w.UUID, Revision: w.Revision}})
		}
		return err
	})
}

// parallel runs act b.N times on so many goroutines.
func parallel(b *testing.B, n int, act func() error) {
	b.Helper()
	b.ReportAllocs()
	var left atomic.Int64
	left.Store(int64(b.N))
	done := make(chan error)
	b.ResetTimer()
	used := processorTime(b)
	for range n {
		go func() {
			for left.Add(-1) >= 0 {
				if err := act(); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range n {
		if err := <-done; err != nil {
			b.Error(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
	b.ReportMetric(float64((processorTime(b)-used).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// processorTime is what the process has used, flushes and compactions
// included: a figure that other processes disturb less than the clock.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkGet compares a Get with Pebble's of the same key, of objects in the
// cache and of objects that must be read from tables.
func BenchmarkGet(b *testing.B) {
	const records = 200_000
	backend, s := benchStore(b)
	var revision atomic.Uint64
	uuids := make([]string, records)
	batch := backend.db.NewBatch()
	for i := range uuids {
		w := benchWrite(&revision)
		uuids[i] = w.UUID
		if err := setRecord(batch, s.id, w.UUID, stored{revision: w.Revision, body: w.Body}); err != nil {
			b.Fatal(err)
		}
		if batch.Len() > 1<<20 {
			if err := backend.committer.commit(context.Background(), &request{batch: batch}); err != nil {
				b.Fatal(err)
			}
			batch = backend.db.NewBatch()
		}
	}
	if err := backend.committer.commit(context.Background(), &request{batch: batch}); err != nil {
		b.Fatal(err)
	}
	if err := backend.db.Flush(); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		n    int
	}{{"hot", 1000}, {"cold", records}} {
		b.Run(c.name+"/bare", func(b *testing.B) {
			parallel(b, 64, func() error {
				_, closer, err := backend.db.Get(appendUUIDKey(nil, s.id, kindObject, uuids[rand.IntN(c.n)]))
				if err != nil {
					return err
				}
				return closer.Close()
			})
		})
		b.Run(c.name+"/get", func(b *testing.B) {
			parallel(b, 64, func() error {
				_, ok, err := s.Get(context.Background(), uuids[rand.IntN(c.n)])
				if !ok && err == nil {
					return fmt.Errorf("not found")
				}
				return err
			})
		})
	}
	b.Run("absent/get", func(b *testing.B) {
		parallel(b, 64, func() error {
			_, _, err := s.Get(context.Background(), uuids[rand.IntN(records)]+"x")
			return err
		})
	})
}
