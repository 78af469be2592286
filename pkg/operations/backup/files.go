package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// readFiles backs up a checkpoint. A file that the previous backup had, with the same
// name, size and time, is not read: those of tables never change.
func (r *run) readFiles(ctx context.Context, b Source, from driver.Checkpointer) (files []File, err error) {
	folder, release, err := from.Checkpoint(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	known := map[File]Part{}
	for _, previous := range r.previous.Backends {
		for _, f := range previous.Files {
			if previous.Name == b.Name {
				known[File{Name: f.Name, Modified: f.Modified, Part: Part{Size: f.Size}}] = f.Part
			}
		}
	}
	return files, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return unreadable(path, err)
		}
		info, err := entry.Info()
		if err != nil {
			return unreadable(path, err)
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		f := File{Name: filepath.ToSlash(name), Modified: info.ModTime().UnixNano(), Part: Part{Size: info.Size()}}
		if f.Part, err = r.file(ctx, path, known[f]); err != nil {
			return err
		}
		files = append(files, f)
		r.progress(b.Name, int64(len(files)))
		return nil
	})
}

func unreadable(path string, err error) error {
	return errs.Wrap(err, errs.Unavailable, "%s, of the checkpoint of the stores, can't be read", path)
}

// file backs up one file; known is the file in the previous backup, or zero.
func (r *run) file(ctx context.Context, path string, known Part) (Part, error) {
	if known.Hash != "" {
		have, err := r.to.has(ctx, known)
		if err != nil || have {
			r.count(known, false)
			return known, err
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return Part{}, unreadable(path, err)
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	size, err := io.Copy(sum, reader{ctx, f})
	if err != nil {
		return Part{}, err
	}
	p := Part{Hash: hex.EncodeToString(sum.Sum(nil)), Size: size}
	have, err := r.to.has(ctx, p)
	if err == nil && !have {
		if _, err = f.Seek(0, io.SeekStart); err == nil {
			err = r.to.copy(ctx, p, reader{ctx, f})
		}
	}
	r.count(p, !have)
	return p, err
}

// reader reads a file until its context ends.
type reader struct {
	ctx  context.Context
	file *os.File
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, errs.Wrap(err, errs.Canceled, "the backup was canceled")
	}
	n, err := r.file.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = unreadable(r.file.Name(), err)
	}
	return n, err
}

// files restores the files of a backend into a folder that is empty or does not exist,
// and syncs them.
func (r *restore) files(ctx context.Context, b Backend, folder string) error {
	folders := map[string]bool{folder: true}
	for i, f := range b.Files {
		path := filepath.Join(folder, filepath.FromSlash(f.Name))
		if err := r.writeFile(ctx, b, f, path); err != nil {
			return err
		}
		for dir := filepath.Dir(path); dir != folder; dir = filepath.Dir(dir) {
			folders[dir] = true
		}
		r.progress(b.Name, int64(i+1))
	}
	for dir := range folders {
		if err := syncFolder(dir); err != nil {
			return err
		}
	}
	return syncFolder(filepath.Dir(folder))
}

func (r *restore) writeFile(ctx context.Context, b Backend, f File, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return unwritable(path, err)
	}
	in, err := r.from.open(ctx, "file "+f.Name+" of backend "+b.Name, f.Part)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return unwritable(path, err)
	}
	from := &source{Reader: in}
	_, err = io.Copy(out, from)
	if err == nil {
		err = out.Sync()
	}
	err = errors.Join(err, out.Close())
	if from.failed {
		return err
	}
	return unwritable(path, err)
}

func unwritable(path string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return errs.Wrap(err, errs.Unavailable, "%s can't be written: the disk is full", path)
	}
	return errs.Wrap(err, errs.Unavailable, "%s can't be written", path)
}

func syncFolder(folder string) error {
	dir, err := os.Open(folder)
	if err != nil {
		return unwritable(folder, err)
	}
	return unwritable(folder, errors.Join(dir.Sync(), dir.Close()))
}
