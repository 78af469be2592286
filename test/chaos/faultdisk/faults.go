package faultdisk

import (
	"syscall"
	"time"
)

// defaultFree is room that no test fills.
const defaultFree = 64 << 30 / pageSize

// faults are what is wrong with a disk.
type faults struct {
	free      int64         // pages that can be used
	every     syscall.Errno // the result of every operation
	writing   syscall.Errno // of those that change something
	syncing   syscall.Errno // of syncs, which lose what they should have synced
	syncDelay time.Duration
}

// set changes the faults and wakes the syncs that are delayed.
func (d *Disk) set(change func(*faults)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(&d.faults)
	close(d.changed)
	d.changed = make(chan struct{})
}

// Heal ends all faults.
func (d *Disk) Heal() { d.set(func(f *faults) { *f = faults{free: defaultFree} }) }

// Fail lets every operation fail with EIO, as if the disk was unplugged.
func (d *Disk) Fail() { d.set(func(f *faults) { f.every = syscall.EIO }) }

// FailSyncs lets every sync fail with EIO. As with the kernel's, what it should have written is lost in a
// power cut even if a later sync succeeds.
func (d *Disk) FailSyncs() { d.set(func(f *faults) { f.syncing = syscall.EIO }) }

// FailWrites lets everything that changes the disk fail with EIO.
func (d *Disk) FailWrites() {
	d.set(func(f *faults) { f.writing, f.syncing = syscall.EIO, syscall.EIO })
}

// ReadOnly lets everything that changes the disk fail with EROFS.
func (d *Disk) ReadOnly() { d.set(func(f *faults) { f.writing = syscall.EROFS }) }

// Fill leaves this many bytes of room: more fails with ENOSPC.
func (d *Disk) Fill(room int64) {
	d.set(func(f *faults) { f.free = d.used + room/pageSize })
}

// DelaySyncs lets each sync take at least this long.
func (d *Disk) DelaySyncs(delay time.Duration) { d.set(func(f *faults) { f.syncDelay = delay }) }

// delaySync waits as long as a sync is delayed. The caller does not hold the lock.
func (d *Disk) delaySync() {
	d.mu.Lock()
	delay, changed := d.faults.syncDelay, d.changed
	d.mu.Unlock()
	if delay == 0 {
		return
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	}
}

// mayWrite reports why something that needs more pages can't be written. The caller holds the lock.
func (d *Disk) mayWrite(pages int64) syscall.Errno {
	switch {
	case d.faults.every != 0:
		return d.faults.every
	case d.faults.writing != 0:
		return d.faults.writing
	case pages > 0 && d.used+pages > d.faults.free:
		return syscall.ENOSPC
	}
	return 0
}
