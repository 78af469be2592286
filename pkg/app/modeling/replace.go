package modeling

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"belfry/config/value"
	"belfry/pkg/app/hold"
	"belfry/pkg/errs"
)

// replace writes a file, which has the old content or all of the new one. A link stays, and the file that it names is
// replaced. The mode is that of the file before; of a new one the given one.
func replace(path string, content []byte, mode fs.FileMode) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return errs.Wrap(err, errs.Unavailable, "the folder %s can't be made", folder)
	}
	f, err := os.CreateTemp(folder, filepath.Base(path)+".*")
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "%s can't be written: %s", path, value.Reason(err))
	}
	defer os.Remove(f.Name())
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), keepOwner(f, path), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "%s can't be replaced: %s", path, value.Reason(err))
	}
	return hold.SyncFolder(folder)
}

// modeOf returns the mode of a file.
func modeOf(path string) (fs.FileMode, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, errs.Wrap(err, errs.Unavailable, "%s can't be read", path)
	}
	return info.Mode().Perm(), nil
}

// keepOwner gives a new file the owner of the one that it replaces, where the process may do that.
func keepOwner(f *os.File, path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if of, ok := info.Sys().(*syscall.Stat_t); ok && (int(of.Uid) != os.Geteuid() || int(of.Gid) != os.Getegid()) {
		_ = f.Chown(int(of.Uid), int(of.Gid))
	}
	return nil
}

// remove removes a file.
func remove(path string) error {
	if err := os.Remove(path); err != nil {
		return errs.Wrap(err, errs.Unavailable, "%s can't be removed: %s", path, value.Reason(err))
	}
	return hold.SyncFolder(filepath.Dir(path))
}
