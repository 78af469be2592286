package filestore

import (
	"github.com/cockroachdb/pebble/v2/vfs"
)

// disk is the file system as Pebble sees it: one on which writing never fails.
//
// Pebble answers a failed write of its log or its list of tables by ending the
// process, in places by a fault that nothing can catch. So the goroutine that
// met the error is kept here for good, after everyone who waits has been told;
// the log stays as the disk left it, for recovery at the next start.
type disk struct {
	vfs.FS
	h *health
}

// Unwrap is part of vfs.FS.
func (d disk) Unwrap() vfs.FS { return d.FS }

// wrote passes on the result of writing, if it is good or Pebble has still
// someone to report it to, which is until it is open.
func (h *health) wrote(err error) error {
	if err == nil || !h.armed.Load() {
		return err
	}
	h.wrecked.Store(true)
	_ = h.fail(err)
	select {}
}

func (d disk) file(f vfs.File, err error) (vfs.File, error) {
	if err := d.h.wrote(err); err != nil {
		return nil, err
	}
	return file{File: f, h: d.h}, nil
}

// Create is part of vfs.FS.
func (d disk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.file(d.FS.Create(name, category))
}

// ReuseForWrite is part of vfs.FS.
func (d disk) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.file(d.FS.ReuseForWrite(from, to, category))
}

// OpenReadWrite is part of vfs.FS.
func (d disk) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return d.file(d.FS.OpenReadWrite(name, category, opts...))
}

// OpenDir is part of vfs.FS. A folder is opened to be synced.
func (d disk) OpenDir(name string) (vfs.File, error) { return d.file(d.FS.OpenDir(name)) }

// Link is part of vfs.FS.
func (d disk) Link(from, to string) error { return d.h.wrote(d.FS.Link(from, to)) }

// Rename is part of vfs.FS.
func (d disk) Rename(from, to string) error { return d.h.wrote(d.FS.Rename(from, to)) }

// file is an open file of a disk.
type file struct {
	vfs.File
	h *health
}

// Write is part of vfs.File.
func (f file) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, f.h.wrote(err)
}

// WriteAt is part of vfs.File.
func (f file) WriteAt(p []byte, offset int64) (int, error) {
	n, err := f.File.WriteAt(p, offset)
	return n, f.h.wrote(err)
}

// Sync is part of vfs.File.
func (f file) Sync() error { return f.h.wrote(f.File.Sync()) }

// SyncData is part of vfs.File.
func (f file) SyncData() error { return f.h.wrote(f.File.SyncData()) }

// SyncTo is part of vfs.File.
func (f file) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	return full, f.h.wrote(err)
}

// Close is part of vfs.File.
func (f file) Close() error { return f.h.wrote(f.File.Close()) }
