package filestore

import (
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"belfry/pkg/errs"
)

// lockFolder makes the folder and takes its lock, which the operating system
// gives free when the process ends, however it ends.
func lockFolder(folder string, fs vfs.FS) (*pebble.Lock, error) {
	if err := makeFolder(folder, fs); err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "the store's folder %s can't be made", folder)
	}
	lock, err := pebble.LockDirectory(folder, fs)
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable,
			"the store's folder %s is in use by another process, or can't be written: a folder belongs to one process", folder)
	}
	return lock, nil
}

// makeFolder makes a folder, for its owner alone since it holds what users
// trust us with, and syncs every folder that gained an entry: without that a
// power cut could take the whole new folder, acknowledged writes and all.
func makeFolder(folder string, fs vfs.FS) error {
	if _, err := fs.Stat(folder); err == nil {
		return nil
	}
	parent := filepath.Dir(folder)
	if parent != folder {
		if err := makeFolder(parent, fs); err != nil {
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
