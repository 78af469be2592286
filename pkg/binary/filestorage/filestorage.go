// Package filestorage keeps the contents of binaries in a folder, for a belfry
// that runs on one machine. It is a driver.Storage.
//
// A content is the file <folder>/<two digits>/<two digits>/<hash>, named by the
// beginning of its hash and by the hash, so that no folder grows large. A stage
// is a file in <folder>/tmp. Committing makes a hard link of it under the
// content's name: that is one act, it works again after the content has been
// deleted, and the stage needs no copy. File first, then folders are synced:
// what Commit has acknowledged outlives a power cut.
//
// Whatever else lies in the folder is left alone, symbolic links included. The
// folder belongs to one process.
package filestorage

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

// Storage is a folder of contents.
type Storage struct {
	root  *os.Root
	fault atomic.Pointer[errs.Error] // the first that makes the folder untrustworthy

	sync   func(*os.File) error // brings a file or a folder to the disk
	shards sync.Map             // folders that outlive a power cut

	mu     sync.Mutex
	stages map[string]bool // names of those in use
}

var _ driver.Storage = (*Storage)(nil)

// Open opens a folder, and makes it when it is not there.
func Open(folder string) (*Storage, error) {
	if err := makeFolder(filepath.Join(folder, tmp)); err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "the folder of binaries %s can't be made", folder)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "the folder of binaries %s can't be opened", folder)
	}
	s := &Storage{root: root, sync: (*os.File).Sync, stages: map[string]bool{}}
	if err := s.tryLink(); err != nil {
		_ = root.Close()
		return nil, errs.Wrap(err, errs.Unavailable, "the folder of binaries %s can't be used: it must be writable, and its file system must know hard links", folder)
	}
	return s, nil
}

// makeFolder makes a folder, for its owner alone since it holds what users
// trust us with, and syncs every folder that gained an entry.
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

// tryLink finds out at the start what every Commit needs.
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

// path is where a content is.
func path(hash string) string { return join(shard(hash), hash) }

// shard is the folder of a content.
func shard(hash string) string { return join(hash[:2], hash[2:4]) }

// Stat returns what is kept under a hash.
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

// Delete removes a content. A power cut may bring it back: then no record names
// it, and it is found once more.
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

// Ping reports whether the folder is there and can be trusted.
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

// Close ends all use.
func (s *Storage) Close() error { return s.root.Close() }

// RemoveAbandoned removes stages of a process that is gone. Their names say when they
// began.
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
