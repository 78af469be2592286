package filestore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

var byWriter = driver.Index{Name: "writer", Parts: 1}

func keysOf(body []byte) []driver.Key {
	writer, _, _ := bytes.Cut(body, []byte(" "))
	return []driver.Key{{Index: "writer", Parts: [][]byte{writer}}}
}

func openStore(t *testing.T, folder string, fs vfs.FS) (*Backend, *store) {
	t.Helper()
	b, err := Open(folder, Options{MemTableBytes: 256 << 10, FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.Open(context.Background(), driver.Spec{Name: "Books", Indexes: []driver.Index{byWriter}, Keys: keysOf})
	if err != nil {
		t.Fatal(err)
	}
	return b, s.(*store)
}

// ledger holds what was acknowledged, as writers note it.
type ledger struct {
	mu      sync.Mutex
	changed sync.Cond               // by an acknowledged or a failed write
	last    map[string]driver.Write // the last acknowledged write of each uuid
	writes  int                     // acknowledged
	err     error                   // of the first failed write
}

func newLedger() *ledger {
	l := &ledger{last: make(map[string]driver.Write)}
	l.changed.L = &l.mu
	return l
}

func (l *ledger) acknowledged() map[string]driver.Write {
	l.mu.Lock()
	defer l.mu.Unlock()
	copied := make(map[string]driver.Write, len(l.last))
	for uuid, w := range l.last {
		copied[uuid] = w
	}
	return copied
}

// writer creates, changes, deletes and creates again records of its own until
// stop is closed or a write fails, and notes each write that is acknowledged.
func (l *ledger) writer(s *store, id int, stop <-chan struct{}) error {
	random := rand.New(rand.NewPCG(uint64(id), 1))
	for n := uint64(1); ; n++ {
		select {
		case <-stop:
			return nil
		default:
		}
		uuid := fmt.Sprintf("w%d-%d", id, random.IntN(20))
		l.mu.Lock()
		before := l.last[uuid]
		l.mu.Unlock()
		w := nextWrite(before, uuid, id, n)
		err := s.Put(context.Background(), w)
		l.note(w, err)
		if err != nil {
			return err
		}
	}
}

func (l *ledger) note(w driver.Write, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.err = cmp.Or(l.err, err)
	} else {
		l.last[w.UUID] = w
		l.writes++
	}
	l.changed.Broadcast()
}

func nextWrite(before driver.Write, uuid string, id int, n uint64) driver.Write {
	w := driver.Write{UUID: uuid, Revision: n,
		Event: driver.Event{ID: fmt.Sprintf("%s/%d", uuid, n), Subject: "s", Payload: []byte("p")}}
	if before.Body != nil {
		w.IfRevision = before.Revision
	}
	if before.Body == nil || n%4 != 0 {
		w.Body = fmt.Appendf(nil, "%d body of %s at %d %s", id, uuid, n, bytes.Repeat([]byte("x"), int(n%700)))
		w.Keys = keysOf(w.Body)
	}
	return w
}

// startWriters returns what they note and a function that stops them.
func startWriters(t *testing.T, s *store, n int) (*ledger, func()) {
	t.Helper()
	l := newLedger()
	stop := make(chan struct{})
	var group sync.WaitGroup
	for id := range n {
		group.Go(func() {
			if err := l.writer(s, id, stop); err != nil {
				t.Errorf("writer %d: %v", id, err)
			}
		})
	}
	return l, func() { close(stop); group.Wait() }
}

// waitFor returns once so many writes have been acknowledged or one has failed.
func (l *ledger) waitFor(writes int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.writes < writes && l.err == nil {
		l.changed.Wait()
	}
	return l.err
}

// checkRecovered asserts that a store holds every write of a ledger, or a later
// one, with the event of that write, and that nothing in it disagrees.
func checkRecovered(t *testing.T, s *store, acknowledged map[string]driver.Write) {
	t.Helper()
	ctx := context.Background()
	waiting := make(map[string]bool)
	events, _, err := s.Pending(ctx, nil, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		waiting[e.ID] = true
	}
	for uuid, w := range acknowledged {
		got, ok, err := s.Get(ctx, uuid)
		switch {
		case err != nil || !ok || got.Revision < w.Revision:
			t.Errorf("%s: acknowledged at %d, is at %d (found %v, error %v)", uuid, w.Revision, got.Revision, ok, err)
		case got.Revision == w.Revision && (!bytes.Equal(got.Body, w.Body) || got.Deleted != (w.Body == nil)):
			t.Errorf("%s at %d has another body than was acknowledged", uuid, w.Revision)
		}
		if !waiting[w.Event.ID] {
			t.Errorf("the event %s of an acknowledged write is lost", w.Event.ID)
		}
	}
	checkConsistent(t, s, int64(len(events)))
}

// checkConsistent asserts that records, index and counts agree.
func checkConsistent(t *testing.T, s *store, events int64) {
	t.Helper()
	ctx := context.Background()
	all, err := s.Scan(ctx, nil, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	found, err := s.Query(ctx, driver.Query{Index: "writer", Limit: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Records) != len(all.Records) {
		t.Errorf("the index has %d entries for %d records", len(found.Records), len(all.Records))
	}
	records, pending, err := s.Count(ctx)
	if err != nil || records != int64(len(all.Records)) || pending != events {
		t.Errorf("counted %d records and %d events, there are %d and %d; error %v", records, pending, len(all.Records),
			events, err)
	}
}

// TestAcknowledgedWritesSurviveAPowerFailure cuts the power at random moments: of what was not synced, none
// or a random part reached the disk. The log is replaced after about 400 writes.
func TestAcknowledgedWritesSurviveAPowerFailure(t *testing.T) {
	for _, unsynced := range []int{0, 50, 90} {
		for seed := range 4 {
			t.Run(fmt.Sprintf("unsynced=%d,seed=%d", unsynced, seed), func(t *testing.T) {
				fs := vfs.NewCrashableMem()
				b, s := openStore(t, "/data/stores", fs)
				l, stop := startWriters(t, s, 8)
				if err := l.waitFor(150 + 350*seed); err != nil {
					t.Fatal(err)
				}
				acknowledged := l.acknowledged()
				after := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced,
					RNG: rand.New(rand.NewPCG(uint64(seed), 2))})
				stop()
				if err := b.Close(); err != nil {
					t.Fatal(err)
				}
				b, s = openStore(t, "/data/stores", after)
				checkRecovered(t, s, acknowledged)
				if err := b.Close(); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// TestCopiedFolderHasAcknowledgedWrites copies the folder file by file while it is written to,
// the log last, as a killed process leaves it.
func TestCopiedFolderHasAcknowledgedWrites(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "stores")
	b, s := openStore(t, folder, vfs.Default)
	l, stop := startWriters(t, s, 8)
	if err := l.waitFor(1000); err != nil {
		t.Fatal(err)
	}
	acknowledged := l.acknowledged()
	copied := copyConsistently(t, folder)
	stop()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b, s = openStore(t, copied, vfs.Default)
	checkRecovered(t, s, acknowledged)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// copyConsistently copies a folder until no file came or went meanwhile, and none but
// the log grew: a copy that mixes two moments, such as the beginning of a table and the
// manifest that has all of it, is none.
func copyConsistently(t *testing.T, folder string) string {
	t.Helper()
	for {
		to := filepath.Join(t.TempDir(), "copy")
		before := listFiles(t, folder)
		if copyFiles(t, folder, to, slices.Sorted(maps.Keys(before))) && maps.Equal(listFiles(t, folder), before) {
			return to
		}
	}
}

// listFiles returns the files of a folder with their sizes, that of the log left out.
func listFiles(t *testing.T, folder string) map[string]int64 {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]int64{}
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case os.IsNotExist(err): // the next list is without it, too
		case err != nil:
			t.Fatal(err)
		case filepath.Ext(e.Name()) == ".log":
			files[e.Name()] = 0
		default:
			files[e.Name()] = info.Size()
		}
	}
	return files
}

func copyFiles(t *testing.T, from, to string, names []string) bool {
	t.Helper()
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(from, name))
		if os.IsNotExist(err) {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return true
}

func TestFolderIsLocked(t *testing.T) {
	folder := t.TempDir()
	b, _ := openStore(t, folder, vfs.Default)
	_, err := Open(folder, Options{})
	if !errors.Is(err, errs.Unavailable) {
		t.Fatalf("a second Open of a folder: %v, want an error of kind %q", err, errs.Unavailable)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Ping(context.Background()); !errors.Is(err, errs.Unavailable) {
		t.Fatalf("Ping after Close: %v, want an error of kind %q", err, errs.Unavailable)
	}
	b, _ = openStore(t, folder, vfs.Default)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}
