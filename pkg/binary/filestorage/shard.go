package filestorage

import (
	"errors"
	"io/fs"
	"path/filepath"

	"belfry/pkg/errs"
)

// makeShard creates the folder of a content and its parent.
func (s *Storage) makeShard(shard string) error {
	if _, known := s.shards.Load(shard); known {
		return nil
	}
	for _, folder := range []string{filepath.Dir(shard), shard} {
		if err := s.root.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return s.unwritable(err)
		}
		info, err := s.root.Lstat(folder)
		if err != nil {
			return unreadable(err)
		}
		if !info.IsDir() {
			return errs.New(errs.Internal, "%s in the folder of binaries is not a folder: remove it", folder)
		}
	}
	return nil
}

// syncShard makes the entries of the folder of a content durable and, once for
// each folder, the folder itself.
func (s *Storage) syncShard(shard string) error {
	if err := s.syncFolder(shard); err != nil {
		return err
	}
	if _, known := s.shards.Load(shard); known {
		return nil
	}
	for _, folder := range []string{filepath.Dir(shard), "."} {
		if err := s.syncFolder(folder); err != nil {
			return err
		}
	}
	s.shards.Store(shard, true)
	return nil
}

// syncFolder syncs the entries of a folder. After a failed sync it is unknown which
// entries are durable, and a second sync may succeed without writing them: all
// later writes are refused.
func (s *Storage) syncFolder(folder string) error {
	dir, err := s.root.Open(folder)
	if err != nil {
		return unreadable(err)
	}
	err = s.sync(dir)
	_ = dir.Close()
	if err != nil {
		return s.fail(err)
	}
	return nil
}
