// Package memdisk is a disk in memory for tests of the file backend, whose log can be held back before it is
// synced and which can lose its power.
package memdisk

import (
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Disk is a file system in memory.
type Disk struct {
	vfs.FS
	memory *vfs.MemFS
	syncs  sync.RWMutex // a sync of a log holds it for reading
}

// New returns an empty disk.
func New() *Disk { return of(vfs.NewCrashableMem()) }

func of(memory *vfs.MemFS) *Disk {
	d := &Disk{memory: memory}
	d.FS = errorfs.Wrap(d.memory, errorfs.InjectorFunc(d.beforeOperation))
	return d
}

func (d *Disk) beforeOperation(op errorfs.Op) error {
	switch op.Kind {
	case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
		if strings.HasSuffix(op.Path, ".log") {
			d.syncs.RLock()
			defer d.syncs.RUnlock()
		}
	}
	return nil
}

// HoldSyncs lets no sync of a log begin until ReleaseSyncs.
func (d *Disk) HoldSyncs() { d.syncs.Lock() }

// ReleaseSyncs ends HoldSyncs.
func (d *Disk) ReleaseSyncs() { d.syncs.Unlock() }

// AfterPowerFailure returns the disk as it is when the power fails now: without what is not synced.
func (d *Disk) AfterPowerFailure() *Disk { return of(d.memory.CrashClone(vfs.CrashCloneCfg{})) }
