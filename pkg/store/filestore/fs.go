package filestore

import (
	"github.com/cockroachdb/pebble/v2/vfs"
)

// disk is the file system that Pebble sees: one on which writes never fail.
//
// Pebble ends the process after a failed write of its log or manifest, in
// places by a fault that can't be recovered. So the goroutine that got the error
// blocks here forever, after all waiting callers have received it; the log stays
// as it is, for recovery at the next start.
type disk struct {
	vfs.FS
	h *health
}

// Unwrap implements vfs.FS.
func (d disk) Unwrap() vfs.FS { return d.FS }

// checkWrite returns the result of a write if it succeeded, or if Pebble is being
// opened or closed and can still report it.
func (h *health) checkWrite(err error) error {
	if err == nil || !h.active.Load() {
		return err
	}
	h.halted.Store(true)
	_ = h.fail(err)
	select {}
}

func (d disk) file(f vfs.File, err error) (vfs.File, error) {
	if err := d.h.checkWrite(err); err != nil {
		return nil, err
	}
	return file{File: f, h: d.h}, nil
}

// Create implements vfs.FS.
func (d disk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.file(d.FS.Create(name, category))
}

// ReuseForWrite implements vfs.FS.
func (d disk) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.file(d.FS.ReuseForWrite(from, to, category))
}

// OpenReadWrite implements vfs.FS.
func (d disk) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return d.file(d.FS.OpenReadWrite(name, category, opts...))
}

// OpenDir implements vfs.FS. A directory is opened to be synced.
func (d disk) OpenDir(name string) (vfs.File, error) { return d.file(d.FS.OpenDir(name)) }

// Link implements vfs.FS.
func (d disk) Link(from, to string) error { return d.h.checkWrite(d.FS.Link(from, to)) }

// Rename implements vfs.FS.
func (d disk) Rename(from, to string) error { return d.h.checkWrite(d.FS.Rename(from, to)) }

// file is an open file of a disk.
type file struct {
	vfs.File
	h *health
}

// Write implements vfs.File.
func (f file) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, f.h.checkWrite(err)
}

// WriteAt implements vfs.File.
func (f file) WriteAt(p []byte, offset int64) (int, error) {
	n, err := f.File.WriteAt(p, offset)
	return n, f.h.checkWrite(err)
}

// Sync implements vfs.File.
func (f file) Sync() error { return f.h.checkWrite(f.File.Sync()) }

// SyncData implements vfs.File.
func (f file) SyncData() error { return f.h.checkWrite(f.File.SyncData()) }

// SyncTo implements vfs.File.
func (f file) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	return full, f.h.checkWrite(err)
}

// Close implements vfs.File.
func (f file) Close() error { return f.h.checkWrite(f.File.Close()) }
