package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/test/kit"
)

func openBooks(t *testing.T, folder string, o Options) (*Backend, driver.Store) {
	t.Helper()
	b, err := Open(folder, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	s, err := b.Open(t.Context(), driver.Spec{Name: "Books"})
	if err != nil {
		t.Fatal(err)
	}
	return b, s
}

func putBook(ctx context.Context, s driver.Store, n int64) error {
	return s.Put(ctx, driver.Write{UUID: fmt.Sprint(n), Revision: 1, Body: []byte(`{}`),
		Event: driver.Event{ID: fmt.Sprint(n), Subject: "s", Payload: []byte("{}")}})
}

// While books are written, a checkpoint has all that were acknowledged before, and the copy of its files is a backend.
func TestACheckpointHasWhatWasAcknowledged(t *testing.T) {
	b, s := openBooks(t, t.TempDir(), Options{MemTableBytes: 64 << 10})
	var next, done atomic.Int64
	var writing sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		writing.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := putBook(t.Context(), s, next.Add(1)); err != nil {
					t.Error(err)
				}
				done.Add(1)
			}
		})
	}
	for round := range 3 {
		before := done.Load()
		kit.WaitFor(t, "writes", func() bool { return done.Load() > before+500 })
		acknowledged := done.Load()
		folder, release, err := b.Checkpoint(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.Checkpoint(t.Context()); !errors.Is(err, errs.Unavailable) {
			t.Errorf("a second checkpoint: %v", err)
		}
		copied := t.TempDir()
		if err := os.CopyFS(copied, os.DirFS(folder)); err != nil {
			t.Fatal(err)
		}
		if err := release(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the checkpoint is left: %v", err)
		}
		_, there := openBooks(t, copied, Options{})
		records, pending, err := there.Count(t.Context())
		if err != nil || records < acknowledged || records != pending {
			t.Errorf("round %d: %d records and %d events of at least %d, %v", round, records, pending, acknowledged,
				err)
		}
	}
	close(stop)
	writing.Wait()
}

func TestACheckpointThatAKilledProcessHasLeftIsRemoved(t *testing.T) {
	folder := t.TempDir()
	left := filepath.Join(folder, checkpointFolder, "000001.sst")
	if err := os.MkdirAll(filepath.Dir(left), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	openBooks(t, folder, Options{})
	if _, err := os.Stat(filepath.Dir(left)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
}

// full is a disk without space for checkpoints.
type full struct{ vfs.FS }

func (f full) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.Contains(name, checkpointFolder) {
		return nil, &fs.PathError{Op: "create", Path: name, Err: syscall.ENOSPC}
	}
	return f.FS.Create(name, category)
}

func TestACheckpointThatCanNotBeWrittenDoesNoHarm(t *testing.T) {
	b, s := openBooks(t, t.TempDir(), Options{FS: full{vfs.Default}})
	for n := range int64(2) {
		if _, _, err := b.Checkpoint(t.Context()); !errors.Is(err, errs.Unavailable) {
			t.Errorf("a checkpoint on a full disk: %v", err)
		}
		if err := putBook(t.Context(), s, n); err != nil {
			t.Errorf("a write after it: %v", err)
		}
	}
}

// A process that is killed while it opens a folder can leave no log, and Pebble opens that without a new manifest. A
// checkpoint has what was written before nevertheless.
func TestACheckpointWhereNoLogIsLeft(t *testing.T) {
	open := func(folder string) (*Backend, driver.Store) {
		b, err := Open(folder, Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := b.Open(t.Context(), driver.Spec{Name: "Books"})
		if err != nil {
			t.Fatal(err)
		}
		return b, s
	}
	folder := t.TempDir()
	b, s := open(folder)
	if err := errors.Join(putBook(t.Context(), s, 1), b.Close()); err != nil {
		t.Fatal(err)
	}
	b, _ = open(folder) // flushes the log, and begins another one
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(folder, "*.log"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("%v, %v", logs, err)
	}
	if err := os.Remove(logs[0]); err != nil { // the process was killed before it began that
		t.Fatal(err)
	}
	b, _ = open(folder)
	from, release, err := b.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	if err := errors.Join(os.CopyFS(copied, os.DirFS(from)), release(), b.Close()); err != nil {
		t.Fatal(err)
	}
	restored, books := open(copied)
	if _, found, err := books.Get(t.Context(), "1"); err != nil || !found {
		t.Errorf("the book is found: %v, %v", found, err)
	}
	if err := restored.Close(); err != nil {
		t.Fatal(err)
	}
}
