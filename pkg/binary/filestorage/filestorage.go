// Package filestorage stores the contents of binaries in a folder, for a belfry
// that runs on one machine. It is a driver.Storage.
//
// A content is the file <folder>/<hash[:2]>/<hash[2:4]>/<hash>, so that no folder
// grows large. A stage is a file in <folder>/tmp. Commit creates a hard link to it
// under the name of the content. That is atomic, needs no copy, and works again
// after the content has been deleted. The file is synced first and its folders
// after it, so an acknowledged Commit survives a power failure. The variants of a content
// are beside it: <hash>.<name>.
//
// All other files in the folder are ignored, and so are symbolic links. One
// process uses the folder.
package filestorage

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

// Storage is a folder of contents.
type Storage struct {
	root  *os.Root
	fault atomic.Pointer[errs.Error] // the first failed sync; later writes are refused

	sync   func(*os.File) error // of a file or folder; replaced by tests
	shards sync.Map             // folders that are durable

	mu     sync.Mutex
	stages map[string]bool // names of the stages in use
}

var _ driver.Storage = (*Storage)(nil)

// Open opens a folder, and creates it if it does not exist.
func Open(folder string) (*Storage, error) {
	if err := makeFolder(filepath.Join(folder, tmp)); err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "the folder of binaries %s can't be created", folder)
	}
	s, err := OpenExisting(folder)
	if err != nil {
		return nil, err
	}
	if err := s.tryLink(); err != nil {
		_ = s.Close()
		return nil, errs.Wrap(err, errs.Unavailable,
			"the folder of binaries %s can't be used: it must be writable and on a file system with hard links", folder)
	}
	return s, nil
}

// OpenExisting opens a folder that exists, to read it: it writes nothing, so the folder may be on a disk that is
// read-only, or no folder of contents at all.
func OpenExisting(folder string) (*Storage, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "the folder of binaries %s can't be opened", folder)
	}
	return &Storage{root: root, sync: (*os.File).Sync, stages: map[string]bool{}}, nil
}

// makeFolder creates a folder that only its owner can read, and its parents, and
// syncs every folder that has a new entry.
func makeFolder(folder string) error {
	if _, err := os.Stat(folder); err == nil {
		return nil
	}
	parent := filepath.Dir(folder)
	if parent != folder {
		if err := makeFolder(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	dir, err := os.Open(parent)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// tryLink checks that the file system has hard links, which Commit needs.
func (s *Storage) tryLink() error {
	staged, err := s.stage(context.Background())
	if err != nil {
		return err
	}
	defer staged.Discard()
	link := staged.name + "-link"
	if err := s.root.Link(staged.name, link); err != nil {
		return err
	}
	return s.root.Remove(link)
}

// path is the path of a content.
func path(hash string) string { return join(shard(hash), hash) }

// ContentPath returns the path of a content within the folder of a storage, with slashes. The hash is valid.
func ContentPath(hash string) string { return path(hash) }

// DocumentPath returns the path of a document within the folder of a storage, with slashes.
func DocumentPath(name string) string { return join(documents, name) }

// shard is the folder of a content.
func shard(hash string) string { return join(hash[:2], hash[2:4]) }

// Stat implements driver.Storage.
func (s *Storage) Stat(ctx context.Context, hash string) (driver.Info, bool, error) {
	if err := ctx.Err(); err != nil {
		return driver.Info{}, false, err
	}
	if !driver.ValidHash(hash) {
		return driver.Info{}, false, nil
	}
	info, err := s.root.Lstat(path(hash))
	if errors.Is(err, fs.ErrNotExist) {
		return driver.Info{}, false, nil
	}
	if err != nil {
		return driver.Info{}, false, unreadable(err)
	}
	return driver.Info{Hash: hash, Size: info.Size(), Modified: info.ModTime()}, info.Mode().IsRegular(), nil
}

// Delete implements driver.Storage. It does not sync: after a power failure the
// content may exist again, without a record, and the next full sweep deletes it.
func (s *Storage) Delete(ctx context.Context, hash string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, found, err := s.Stat(ctx, hash); err != nil || !found {
		return err
	}
	err := s.root.Remove(path(hash))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return s.unwritable(err)
}

// Ping implements driver.Storage.
func (s *Storage) Ping(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if e := s.fault.Load(); e != nil {
		return e
	}
	_, err := s.root.Stat(tmp)
	return unreadable(err)
}

// Close implements driver.Storage.
func (s *Storage) Close() error { return s.root.Close() }

// RemoveAbandoned implements driver.Storage. The name of a stage has the time at
// which it began.
func (s *Storage) RemoveAbandoned(ctx context.Context, before time.Time) (int, error) {
	entries, err := fs.ReadDir(s.root.FS(), tmp)
	if err != nil {
		return 0, unreadable(err)
	}
	n := 0
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		began, ok := stageBegan(entry)
		name := filepath.Join(tmp, entry.Name())
		if !ok || !began.Before(before) || s.inUse(name) {
			continue
		}
		if err := s.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return n, s.unwritable(err)
		}
		n++
	}
	return n, ctx.Err()
}

// fail refuses all later writes, and returns the first error that was passed to it.
func (s *Storage) fail(cause error) error {
	s.fault.CompareAndSwap(nil, &errs.Error{
		Kind:    errs.Unavailable,
		Message: "a sync of the folder of binaries failed, so it is read-only now: check the disk, then restart belfry",
		Err:     cause,
	})
	return s.fault.Load()
}

// unwritable gives the error of a write a kind.
func (s *Storage) unwritable(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return errs.Wrap(err, errs.Unavailable, "the binary can't be stored: the disk is full")
	case errors.Is(err, syscall.EFBIG):
		return errs.Wrap(err, errs.TooLarge, "the binary is larger than the limit of the file system")
	default:
		return errs.Wrap(err, errs.Unavailable, "the folder of binaries can't be written")
	}
}

// unreadable gives the error of a read a kind.
func unreadable(err error) error {
	return errs.Wrap(err, errs.Unavailable, "the folder of binaries can't be read")
}
