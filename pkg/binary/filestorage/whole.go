package filestorage

import (
	"context"
	"errors"
	"io"
	"io/fs"
)

// stageWhole stages a file that is complete and synced, for a name that it gets by a rename.
func (s *Storage) stageWhole(ctx context.Context, data []byte) (*staged, error) {
	st, err := s.stage(ctx)
	if err != nil {
		return nil, err
	}
	if _, err = st.Write(data); err == nil {
		err = st.sync()
	}
	if err != nil {
		st.Discard()
		return nil, err
	}
	return st, nil
}

// readWhole reads a file of at most so many bytes. absent is the error if there is no regular file of this name.
func (s *Storage) readWhole(name string, most int64, absent error) ([]byte, error) {
	info, err := s.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, absent
	}
	if err != nil {
		return nil, unreadable(err)
	}
	f, err := s.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, absent
	}
	if err != nil {
		return nil, unreadable(err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, most))
	return data, unreadable(err)
}
