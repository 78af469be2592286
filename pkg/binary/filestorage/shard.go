package filestorage

import (
	"errors"
	"io/fs"
	"path/filepath"

	"belfry/pkg/errs"
)

// makeShard makes the folder of a content, and the one around it.
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
			return errs.New(errs.Internal, "in the folder of binaries %s something that is no folder is in the way", folder)
		}
	}
	return nil
}

// syncShard makes what is in the folder of a content outlive a power cut, and
// that folder itself when this has not been done before. The first sync brings
// most to the disk, so the others come last.
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

// syncFolder syncs the entries of a folder. When that fails nobody can say what
// of them a power cut would leave, and asking again tells nothing: everything
// from then on is refused.
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
