package filestore

import (
	"github.com/cockroachdb/pebble/v2/vfs"
)

// disk is the file system that Pebble sees: one on which writes never fail.
//
// Pebble ends the process after a failed write of its log or manifest, in places by a
// fault that can't be recovered. While it is opened, it retries the write of a table
// forever, or fails and stops parts of itself that other parts still use.
//
// So all waiting callers receive the error, and then the goroutine that got it blocks
// here forever. The log stays as it is, for recovery at the next start. On a full disk,
// an open waits for space instead.
type disk struct {
	vfs.FS
	h          *health
	checkpoint string // the folder of a checkpoint, whose files can be lost; "": no checkpoint
}

// Unwrap implements vfs.FS.
func (d disk) Unwrap() vfs.FS { return d.FS }

// retryWhileFull makes a write, and returns its result if it succeeded, or if Pebble is being
// closed and can still report it. While Pebble is being opened it tries again
// when there may be space.
func (h *health) retryWhileFull(write func() error) error {
	for {
		err := write()
		if err == nil || h.closing.Load() {
			return err
		}
		if !h.active.Load() && h.awaitSpace != nil && vfs.IsNoSpaceError(err) {
			if err = h.awaitSpace(err); err == nil {
				continue
			}
		}
		h.blockForever(err)
	}
}

// blockForever makes the backend unusable, and does not return.
func (h *health) blockForever(err error) {
	h.halted.Store(true)
	_ = h.fail(err)
	h.stall(err)
	select {}
}

// open makes a write that returns a file.
func (d disk) open(write func() (vfs.File, error)) (vfs.File, error) {
	var f vfs.File
	err := d.h.retryWhileFull(func() (err error) {
		f, err = write()
		return err
	})
	if err != nil {
		return nil, err
	}
	return file{File: f, h: d.h}, nil
}

// Create implements vfs.FS.
func (d disk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if d.isOfCheckpoint(name) {
		return d.FS.Create(name, category)
	}
	return d.open(func() (vfs.File, error) { return d.FS.Create(name, category) })
}

// ReuseForWrite implements vfs.FS.
func (d disk) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.open(func() (vfs.File, error) { return d.FS.ReuseForWrite(from, to, category) })
}

// OpenReadWrite implements vfs.FS.
func (d disk) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return d.open(func() (vfs.File, error) { return d.FS.OpenReadWrite(name, category, opts...) })
}

// OpenDir implements vfs.FS. A directory is opened to be synced.
func (d disk) OpenDir(name string) (vfs.File, error) {
	if d.isOfCheckpoint(name) {
		return d.FS.OpenDir(name)
	}
	return d.open(func() (vfs.File, error) { return d.FS.OpenDir(name) })
}

// Link implements vfs.FS.
func (d disk) Link(from, to string) error {
	if d.isOfCheckpoint(to) {
		return d.FS.Link(from, to)
	}
	return d.h.retryWhileFull(func() error { return d.FS.Link(from, to) })
}

// Rename implements vfs.FS.
func (d disk) Rename(from, to string) error {
	if d.isOfCheckpoint(to) {
		return d.FS.Rename(from, to)
	}
	return d.h.retryWhileFull(func() error { return d.FS.Rename(from, to) })
}

// file is an open file of a disk.
type file struct {
	vfs.File
	h *health
}

// Write implements vfs.File.
func (f file) Write(p []byte) (n int, err error) {
	err = f.h.retryWhileFull(func() error {
		m, err := f.File.Write(p[n:])
		n += m
		return err
	})
	return n, err
}

// WriteAt implements vfs.File.
func (f file) WriteAt(p []byte, offset int64) (n int, err error) {
	err = f.h.retryWhileFull(func() error {
		m, err := f.File.WriteAt(p[n:], offset+int64(n))
		n += m
		return err
	})
	return n, err
}

// blockAfterFailure returns the error of an operation, and blocks if there is one: it must not be retried, since after
// a sync that failed the next one may succeed without the data.
func (f file) blockAfterFailure(err error) error {
	if err != nil && !f.h.closing.Load() {
		f.h.blockForever(err)
	}
	return err
}

// Sync implements vfs.File.
func (f file) Sync() error { return f.blockAfterFailure(f.File.Sync()) }

// SyncData implements vfs.File.
func (f file) SyncData() error { return f.blockAfterFailure(f.File.SyncData()) }

// SyncTo implements vfs.File.
func (f file) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	return full, f.blockAfterFailure(err)
}

// Close implements vfs.File.
func (f file) Close() error { return f.blockAfterFailure(f.File.Close()) }
