package filestorage

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

// reader reads a part of a content. The end of its context closes it.
type reader struct {
	ctx  context.Context
	part io.LimitedReader // over file
	file *os.File
	stop func() bool
}

// Open implements driver.Storage.
func (s *Storage) Open(ctx context.Context, hash string, offset, length int64) (io.ReadCloser, error) {
	info, found, err := s.Stat(ctx, hash)
	if err != nil {
		return nil, err
	}
	file, err := s.openFile(hash, found)
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		_ = file.Close()
		return nil, unreadable(err)
	}
	left := max(info.Size-offset, 0)
	if length >= 0 {
		left = min(left, length)
	}
	return &reader{
		ctx: ctx, file: file, part: io.LimitedReader{R: file, N: left},
		stop: context.AfterFunc(ctx, func() { _ = file.Close() }),
	}, nil
}

func (s *Storage) openFile(hash string, found bool) (*os.File, error) {
	if !found {
		return nil, notFound()
	}
	file, err := s.root.Open(path(hash))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notFound()
	}
	return file, unreadable(err)
}

func notFound() error { return errs.New(errs.NotFound, "the content of the binary does not exist") }

// Read is part of io.Reader.
func (r *reader) Read(data []byte) (int, error) {
	n, err := r.part.Read(data)
	return n, r.ended(err)
}

// WriteTo implements io.WriterTo, so that io.Copy to a connection uses sendfile.
func (r *reader) WriteTo(w io.Writer) (int64, error) {
	n, err := io.Copy(w, &r.part)
	return n, r.ended(err)
}

// ended returns the error of the context if that is why the file is closed.
func (r *reader) ended(err error) error {
	if errors.Is(err, os.ErrClosed) && r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	return err
}

// Close implements io.Closer.
func (r *reader) Close() error {
	if !r.stop() {
		return nil // the end of the context has closed the file
	}
	return r.file.Close()
}

// List implements driver.Storage.
func (s *Storage) List(ctx context.Context, after string, limit int) (contents []driver.Info, next string, err error) {
	l := lister{ctx: ctx, files: s.root.FS(), after: after, most: limit + 1}
	if err := l.walk(".", 2); err != nil {
		return nil, "", err
	}
	if len(l.found) > limit {
		return l.found[:limit], l.found[limit-1].Hash, nil
	}
	return l.found, "", nil
}

// lister walks through shards in order.
type lister struct {
	ctx   context.Context
	files fs.FS
	after string
	most  int
	found []driver.Info

	variants bool // the contents that have variants are listed, each once, whether they exist or not
}

// walk lists the contents in a folder with so many levels of folders below it.
func (l *lister) walk(folder string, levels int) error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	entries, err := fs.ReadDir(l.files, folder)
	if err != nil {
		return unreadable(err)
	}
	for _, entry := range entries {
		if len(l.found) == l.most {
			return nil
		}
		if levels == 0 {
			if err := l.add(folder, entry); err != nil {
				return err
			}
			continue
		}
		if !isShard(entry) || l.passed(folder, entry.Name()) {
			continue
		}
		if err := l.walk(join(folder, entry.Name()), levels-1); err != nil {
			return err
		}
	}
	return nil
}

// passed reports whether no hash in a shard is greater than after.
func (l *lister) passed(folder, name string) bool {
	prefix := name
	if folder != "." {
		prefix = folder + name
	}
	return prefix < l.after[:min(len(prefix), len(l.after))]
}

func join(folder, name string) string {
	if folder == "." {
		return name
	}
	return folder + "/" + name
}

func isShard(entry fs.DirEntry) bool {
	name := entry.Name()
	return entry.IsDir() && len(name) == 2 && driver.ValidHash(name+zeros[2:])
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

func (l *lister) add(folder string, entry fs.DirEntry) error {
	hash := entry.Name()
	if l.variants {
		if hash, _ = driver.VariantOf(entry.Name()); len(l.found) > 0 && l.found[len(l.found)-1].Hash == hash {
			return nil
		}
	}
	if hash <= l.after || !driver.ValidHash(hash) || shard(hash) != folder || !entry.Type().IsRegular() {
		return nil
	}
	info, err := entry.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unreadable(err)
	}
	l.found = append(l.found, driver.Info{Hash: hash, Size: info.Size(), Modified: info.ModTime()})
	return nil
}
