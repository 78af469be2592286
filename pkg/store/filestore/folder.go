package filestore

import (
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"belfry/pkg/errs"
)

// lockFolder creates the folder and locks it. The operating system releases the
// lock when the process ends, even by a crash.
func lockFolder(folder string, fs vfs.FS) (*pebble.Lock, error) {
	if err := createFolder(folder, fs); err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "the data folder %s can't be created", folder)
	}
	lock, err := pebble.LockDirectory(folder, fs)
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable,
			"the data folder %s is in use by another process or can't be written: only one process can use a folder",
			folder)
	}
	return lock, nil
}

// createFolder creates a folder that only its owner can read, and syncs every
// directory that got a new entry: otherwise a power failure could lose the whole
// new folder with all acknowledged writes.
func createFolder(folder string, fs vfs.FS) error {
	if _, err := fs.Stat(folder); err == nil {
		return nil
	}
	parent := filepath.Dir(folder)
	if parent != folder {
		if err := createFolder(parent, fs); err != nil {
			return err
		}
	}
	if err := fs.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	dir, err := fs.OpenDir(parent)
	if err != nil {
		return err
	}
	if err := dir.Sync(); err != nil {
		_ = dir.Close()
		return err
	}
	return dir.Close()
}
