package filestore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"belfry/pkg/errs"
)

var errDisk = errors.New("the disk is broken")

// breakable is a disk that fails some operations once it is set to.
type breakable struct {
	broken  atomic.Bool
	refuses func(op errorfs.Op) bool
}

func (b *breakable) String() string { return "breakable" }

func (b *breakable) MaybeError(op errorfs.Op) error {
	if b.broken.Load() && b.refuses(op) {
		return errDisk
	}
	return nil
}

// TestDiskErrorsStopTheBackend breaks the disk under writers in several ways. Each time no
// failed write is acknowledged, all later writes are refused, no call hangs, and
// recovery finds what was acknowledged.
func TestDiskErrorsStopTheBackend(t *testing.T) {
	for name, refuses := range map[string]func(op errorfs.Op) bool{
		"sync of the log":  func(op errorfs.Op) bool { return isLog(op) && isSync(op) },
		"write of the log": func(op errorfs.Op) bool { return isLog(op) && op.Kind == errorfs.OpFileWrite },
		"a new log":        func(op errorfs.Op) bool { return isLog(op) && op.Kind == errorfs.OpCreate },
		"sync of tables":   func(op errorfs.Op) bool { return !isLog(op) && isSync(op) },
		"write of tables":  func(op errorfs.Op) bool { return !isLog(op) && op.Kind == errorfs.OpFileWrite },
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			disk := &breakable{refuses: refuses}
			_, s := openStore(t, "/data", errorfs.Wrap(mem, disk))
			l := newLedger()
			var group sync.WaitGroup
			for id := range 8 {
				group.Go(func() {
					if err := l.writer(s, id, nil); !errors.Is(err, errs.Unavailable) {
						t.Errorf("a write on a broken disk: %v, want an error of kind %q", err, errs.Unavailable)
					}
				})
			}
			if err := l.waitFor(500); err != nil {
				t.Fatal(err)
			}
			disk.broken.Store(true)
			group.Wait()
			refusesAll(t, s)
			_, recovered := openStore(t, "/data", mem.CrashClone(vfs.CrashCloneCfg{}))
			checkRecovered(t, recovered, l.acknowledged())
			if err := recovered.b.Close(); err != nil {
				t.Fatal(err)
			}
			if err := s.b.Close(); !errors.Is(err, errs.Unavailable) {
				t.Errorf("Close after a disk error: %v, want an error of kind %q", err, errs.Unavailable)
			}
		})
	}
}

func isLog(op errorfs.Op) bool {
	return len(op.Path) > 4 && op.Path[len(op.Path)-4:] == ".log"
}

func isSync(op errorfs.Op) bool {
	return op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
}

// TestPebbleFatalDoesNotEndTheProcess has Pebble fail on its own goroutine: the process continues.
func TestPebbleFatalDoesNotEndTheProcess(t *testing.T) {
	b, s := openStore(t, "/data", vfs.NewMem())
	var group sync.WaitGroup
	group.Go(func() {
		b.health.Fatalf("%s", "no way on")
		t.Error("Fatalf returned")
	})
	group.Wait()
	refusesAll(t, s)
	if err := b.Close(); !errors.Is(err, errs.Unavailable) {
		t.Errorf("Close: %v, want an error of kind %q", err, errs.Unavailable)
	}
}

func refusesAll(t *testing.T, s *store) {
	t.Helper()
	ctx := context.Background()
	_, _, get := s.Get(ctx, "a")
	_, scan := s.Scan(ctx, nil, 1)
	_, _, pending := s.Pending(ctx, nil, 1)
	for name, err := range map[string]error{"Ping": s.b.Ping(ctx), "Get": get, "Scan": scan, "Pending": pending} {
		if !errors.Is(err, errs.Unavailable) {
			t.Errorf("%s after a disk error: %v, want an error of kind %q", name, err, errs.Unavailable)
		}
	}
}
