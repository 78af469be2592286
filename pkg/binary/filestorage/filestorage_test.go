package filestorage_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"belfry/pkg/binary/driver"
	"belfry/pkg/binary/filestorage"
	"belfry/pkg/errs"
)

func open(t *testing.T, folder string) *filestorage.Storage {
	t.Helper()
	s, err := filestorage.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// keep stores a content.
func keep(s driver.Storage, data []byte) (hash string, err error) {
	staged, err := s.Stage(context.Background())
	if err != nil {
		return "", err
	}
	defer staged.Discard()
	if _, err := staged.Write(data); err != nil {
		return "", err
	}
	return hashOf(data), staged.Commit(context.Background(), hashOf(data))
}

func put(t *testing.T, s driver.Storage, data []byte) string {
	t.Helper()
	hash, err := keep(s, data)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func read(t *testing.T, s driver.Storage, hash string) []byte {
	t.Helper()
	r, err := s.Open(t.Context(), hash, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return data
}

func list(t *testing.T, s driver.Storage) []driver.Info {
	t.Helper()
	all, next, err := s.List(t.Context(), "", 100_000)
	if err != nil || next != "" {
		t.Fatalf("listing: %q follows, error %v", next, err)
	}
	return all
}

func tidy(t *testing.T, s driver.Storage) int {
	t.Helper()
	n, err := s.RemoveAbandoned(t.Context(), time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func kind(t *testing.T, err error, want errs.Kind) {
	t.Helper()
	if err == nil || errs.KindOf(err) != want {
		t.Errorf("got the error %v of kind %q, want kind %q", err, errs.KindOf(err), want)
	}
}

func TestPathOfAContentIsItsHash(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "not", "there", "yet")
	s := open(t, folder)
	data := []byte("hello")
	hash := put(t, s, data)
	path := filepath.Join(folder, hash[:2], hash[2:4], hash)
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%s has %q, error %v", path, got, err)
	}
	for _, path := range []string{folder, filepath.Dir(path), path} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is open to others: %v, error %v", path, info.Mode(), err)
		}
	}
}

// foreign puts into a folder what is not the storage's: files of other names, a
// content where it does not belong, and links to what must not be touched.
func foreign(t *testing.T, folder string, linked string) (outside string) {
	t.Helper()
	away := t.TempDir()
	outside = filepath.Join(away, "outside")
	for _, path := range []string{
		outside, folder + "/README", folder + "/ab/README", folder + "/ab/cd/README", folder + "/ab/cd/" + hashOf(nil),
		folder + "/tmp/README", folder + "/tmp/stage-1-2", folder + "/AB/cd/README", folder + "/abc/README",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("theirs"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(folder, linked[:2], linked[2:4], linked)
	if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, target := range map[string]string{
		link: outside, folder + "/tmp/stage-0000000000000001-00000000000000000000000000": outside, folder + "/99": away,
	} {
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
	}
	return outside
}

// files are the paths below a folder, with what they are.
func files(t *testing.T, folder string) map[string]os.FileMode {
	t.Helper()
	found := map[string]os.FileMode{}
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found[path] = entry.Type()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestForeignFilesAreIgnored(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	data := []byte("a content that something else has the name of")
	linked := hashOf(data)
	outside := foreign(t, folder, linked)
	before := files(t, folder)
	s := open(t, folder)

	if found := list(t, s); len(found) > 0 {
		t.Errorf("%+v are listed", found)
	}
	for _, hash := range []string{linked, hashOf(nil)} {
		if _, found, err := s.Stat(t.Context(), hash); found || err != nil {
			t.Errorf("Stat: found %v, error %v", found, err)
		}
		_, err := s.Open(t.Context(), hash, 0, -1)
		kind(t, err, errs.NotFound)
		if err := s.Delete(t.Context(), hash); err != nil {
			t.Error(err)
		}
	}
	_, err := keep(s, data)
	kind(t, err, errs.Internal)
	elsewhere := "99" + linked[2:]
	_, found, err := s.Stat(t.Context(), elsewhere)
	if found {
		t.Error("a content was found through a link out of the folder")
	}
	kind(t, err, errs.Unavailable)
	if n := tidy(t, s); n != 0 {
		t.Errorf("%d stages were removed that are none", n)
	}
	for path, mode := range files(t, folder) {
		if before[path] != mode {
			t.Errorf("%s has changed", path)
		}
		delete(before, path)
	}
	if got, err := os.ReadFile(outside); len(before) > 0 || err != nil || string(got) != "theirs" {
		t.Errorf("%v are missing; the target of the links has %q, error %v", before, got, err)
	}
}

// connection is what io.Copy is given for a connection that can send files.
type connection struct {
	bytes.Buffer
	from io.Reader
}

func (c *connection) ReadFrom(r io.Reader) (int64, error) {
	c.from = r
	return c.Buffer.ReadFrom(r)
}

// A connection has the operating system send what it knows to be a part of a
// file; see the standard library's net and net/http.
func TestCopyPassesTheFile(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	hash := put(t, s, []byte("0123456789"))
	r, err := s.Open(t.Context(), hash, 2, 5)
	if err != nil {
		t.Fatal(err)
	}
	var c connection
	if n, err := io.Copy(&c, r); n != 5 || err != nil || c.String() != "23456" {
		t.Errorf("%d bytes, %q, error %v", n, c.String(), err)
	}
	part, ok := c.from.(*io.LimitedReader)
	if ok {
		_, ok = part.R.(*os.File)
	}
	if !ok {
		t.Errorf("it was handed a %T", c.from)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestWritingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	staged, err := s.Stage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer staged.Discard()
	cancel()
	_, err = staged.Write([]byte("x"))
	kind(t, err, errs.Canceled)
}

func TestUnusableFoldersAreRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := filestorage.Open(filepath.Join(file, "folder"))
	kind(t, err, errs.Unavailable)

	folder := t.TempDir()
	s := open(t, folder)
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	kind(t, s.Ping(t.Context()), errs.Unavailable)
	_, err = keep(s, []byte("x"))
	kind(t, err, errs.Unavailable)
}
