package filestore

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/test/kit"
)

// fullDisk fails writes as a full disk does, until there is space.
type fullDisk struct {
	full    atomic.Bool
	err     error
	refuses func(op errorfs.Op) bool
}

func (d *fullDisk) String() string { return "full" }

func (d *fullDisk) MaybeError(op errorfs.Op) error {
	if d.full.Load() && d.refuses(op) {
		return d.err
	}
	return nil
}

// crashed returns the disk of a backend that was killed, whose log has writes that no table has, and those writes.
func crashed(t *testing.T) (*vfs.MemFS, *ledger) {
	t.Helper()
	mem := vfs.NewCrashableMem()
	_, s := openStore(t, "/data", mem)
	l := newLedger()
	stop := make(chan struct{})
	ended := make(chan error)
	go func() { ended <- l.writer(s, 1, stop) }()
	if err := l.waitFor(200); err != nil {
		t.Fatal(err)
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return mem.CrashClone(vfs.CrashCloneCfg{}), l
}

// kinds are the writes of an open, each of which meets a full disk.
var kinds = map[string]func(op errorfs.Op) bool{
	"a write of a table":       func(op errorfs.Op) bool { return isTable(op) && op.Kind == errorfs.OpFileWrite },
	"a new table":              func(op errorfs.Op) bool { return isTable(op) && op.Kind == errorfs.OpCreate },
	"a write of the manifest":  func(op errorfs.Op) bool { return isManifest(op) && op.Kind == errorfs.OpFileWrite },
	"a new manifest":           func(op errorfs.Op) bool { return isManifest(op) && op.Kind == errorfs.OpCreate },
	"a new log":                func(op errorfs.Op) bool { return isLog(op) && op.Kind == errorfs.OpCreate },
	"a new file of any kind":   func(op errorfs.Op) bool { return op.Kind == errorfs.OpCreate },
	"a write of any kind":      func(op errorfs.Op) bool { return op.Kind == errorfs.OpFileWrite },
	"the rename of a new file": func(op errorfs.Op) bool { return op.Kind == errorfs.OpRename },
}

func isTable(op errorfs.Op) bool    { return strings.HasSuffix(op.Path, ".sst") }
func isManifest(op errorfs.Op) bool { return strings.Contains(op.Path, "MANIFEST") }

func TestAFolderOnAFullDiskIsOpenedOnceThereIsSpace(t *testing.T) {
	for name, refuses := range kinds {
		t.Run(name, func(t *testing.T) {
			mem, l := crashed(t)
			disk := &fullDisk{err: syscall.ENOSPC, refuses: refuses}
			disk.full.Store(true)
			waited := 0
			b, err := Open("/data", Options{FS: errorfs.Wrap(mem, disk), AwaitSpace: func(full error) error {
				if waited++; waited == 3 {
					disk.full.Store(false)
				}
				if !errors.Is(full, syscall.ENOSPC) {
					t.Errorf("it waits because of %v", full)
				}
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			if waited != 3 && name != "the rename of a new file" {
				t.Errorf("it has waited %d times", waited)
			}
			s, err := b.Open(context.Background(),
				driver.Spec{Name: "Books", Indexes: []driver.Index{byWriter}, Keys: keysOf})
			if err != nil {
				t.Fatal(err)
			}
			checkRecovered(t, s.(*store), l.acknowledged())
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// An open that can't succeed ends with the reason, and loses nothing.
func TestAFolderOnADiskThatFailsIsNotOpenedAndThereIsAReason(t *testing.T) {
	broken := errors.New("the disk is broken")
	stopped := errors.New("stopped waiting")
	for name, refuses := range kinds {
		if name == "the rename of a new file" {
			continue // an open of an existing folder has none
		}
		for why, c := range map[string]struct {
			err, want error
			await     func(error) error
		}{
			"a broken disk": {broken, broken,
				func(err error) error { t.Errorf("it waits after %v", err); return err }},
			"a full disk, and nobody waits":    {syscall.ENOSPC, syscall.ENOSPC, nil},
			"a full disk, and waiting is over": {syscall.ENOSPC, stopped, func(error) error { return stopped }},
		} {
			t.Run(name+" on "+why, func(t *testing.T) {
				t.Parallel()
				mem, l := crashed(t)
				disk := &fullDisk{err: c.err, refuses: refuses}
				disk.full.Store(true)
				ended := make(chan error, 1)
				go func() {
					_, err := Open("/data", Options{FS: errorfs.Wrap(mem, disk), AwaitSpace: c.await})
					ended <- err
				}()
				var err error
				kit.WaitFor(t, "the open ends", func() bool {
					select {
					case err = <-ended:
						return true
					default:
						return false
					}
				})
				if !errors.Is(err, errs.Unavailable) || !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
				_, recovered := openStore(t, "/data", mem.CrashClone(vfs.CrashCloneCfg{}))
				checkRecovered(t, recovered, l.acknowledged())
			})
		}
	}
}
