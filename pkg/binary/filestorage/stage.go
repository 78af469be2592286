package filestorage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

// tmp is the folder of the stages.
const tmp = "tmp"

// stageFormat is the name of a stage: its start in microseconds, and a random
// text.
const stageFormat = "stage-%016x-%026s"

// stageBegan returns the time at which a stage began, from its name, and false for
// other files.
func stageBegan(entry fs.DirEntry) (time.Time, bool) {
	var micro int64
	var random string
	n, _ := fmt.Sscanf(entry.Name(), stageFormat, &micro, &random)
	ok := n == 2 && entry.Type().IsRegular() && entry.Name() == fmt.Sprintf(stageFormat, micro, random)
	return time.UnixMicro(micro), ok
}

func (s *Storage) inUse(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stages[name]
}

// staged is a driver.Staged.
type staged struct {
	s      *Storage
	ctx    context.Context // of Stage; applies to writes
	name   string
	file   *os.File
	failed error // the first failed write or sync; the file is unusable
	synced bool
}

// Stage implements driver.Storage.
func (s *Storage) Stage(ctx context.Context) (driver.Staged, error) {
	return s.stage(ctx)
}

func (s *Storage) stage(ctx context.Context) (*staged, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if e := s.fault.Load(); e != nil {
		return nil, e
	}
	name := filepath.Join(tmp, fmt.Sprintf(stageFormat, time.Now().UnixMicro(), rand.Text()))
	s.mu.Lock()
	s.stages[name] = true
	s.mu.Unlock()
	file, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		s.release(name)
		return nil, s.unwritable(err)
	}
	return &staged{s: s, ctx: ctx, name: name, file: file}, nil
}

func (s *Storage) release(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.stages, name)
}

// Write implements driver.Staged.
func (st *staged) Write(data []byte) (int, error) {
	if err := st.ctx.Err(); err != nil {
		return 0, err
	}
	if st.failed != nil {
		return 0, st.failed
	}
	n, err := st.file.Write(data)
	st.failed = st.s.unwritable(err)
	return n, st.failed
}

// Commit implements driver.Staged. It syncs the folders even if the content exists:
// the stage that linked it may not have synced them yet.
func (st *staged) Commit(ctx context.Context, hash string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !driver.ValidHash(hash) {
		return errs.New(errs.Internal, "%q is not the hash of a content", hash)
	}
	if e := st.s.fault.Load(); e != nil {
		return e
	}
	if err := st.sync(); err != nil {
		return err
	}
	if err := st.s.makeShard(shard(hash)); err != nil {
		return err
	}
	if err := st.s.root.Link(st.name, path(hash)); err != nil && !errors.Is(err, fs.ErrExist) {
		return st.s.unwritable(err)
	}
	if err := st.s.touch(hash); err != nil {
		return err
	}
	return st.s.syncShard(shard(hash))
}

// sync makes the bytes of the stage durable. A failed sync is not repeated: the
// second one may succeed without having written the bytes.
func (st *staged) sync() error {
	if st.failed != nil || st.synced {
		return st.failed
	}
	st.failed = st.s.unwritable(st.s.sync(st.file))
	st.synced = st.failed == nil
	return st.failed
}

// touch sets the modification time of a content to now. It is not an error when the
// content has been deleted since it was linked.
func (s *Storage) touch(hash string) error {
	info, err := s.root.Lstat(path(hash))
	if err == nil && !info.Mode().IsRegular() {
		return errs.New(errs.Internal, "%s in the folder of binaries is not a regular file: remove it", path(hash))
	}
	if err == nil {
		now := time.Now()
		err = s.root.Chtimes(path(hash), now, now)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return s.unwritable(err)
}

// Discard implements driver.Staged.
func (st *staged) Discard() {
	_ = st.file.Close()
	_ = st.s.root.Remove(st.name)
	st.s.release(st.name)
}
