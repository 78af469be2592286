package files_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/api/files"
	"belfry/pkg/binary"
	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

// openStorage is a storage whose contents are opened by a function, once it is set.
type openStorage struct {
	driver.Storage
	open atomic.Pointer[func(context.Context) (io.ReadCloser, error)]
}

func (s *openStorage) set(open func(context.Context) (io.ReadCloser, error)) { s.open.Store(&open) }

// wrap makes the storage that of a service, around its own.
func (s *openStorage) wrap(o *binary.Options, _ *files.Options) { s.Storage, o.Storage = o.Storage, s }

func (s *openStorage) Open(ctx context.Context, hash string, offset, length int64) (io.ReadCloser, error) {
	if open := s.open.Load(); open != nil {
		return (*open)(ctx)
	}
	return s.Storage.Open(ctx, hash, offset, length)
}

// signStorage is a storage with presigned URLs.
type signStorage struct {
	driver.Storage
	sign func(hash string, h driver.SignedHeaders, expiry time.Duration) (string, error)
}

func (s signStorage) Sign(_ context.Context, hash string, h driver.SignedHeaders,
	expiry time.Duration) (string, error) {
	return s.sign(hash, h, expiry)
}

// A content that is missing or truncated is not served as a shorter one.
func TestUnreadableContent(t *testing.T) {
	t.Parallel()
	faulty := &openStorage{}
	l := startLibrary(t, faulty.wrap)
	path, hash := l.add("texts", strings.Repeat("x", 100<<10))
	l.Must(l.storage.Delete(t.Context(), hash))
	if r := l.Do("GET", path, "").Want(500); strings.Contains(r.Text, hash) || strings.Contains(r.Text, l.folder) {
		t.Errorf("the reply names the content: %s", r.Text)
	}
	for name, c := range map[string]struct {
		err    error
		status int
	}{
		"unavailable": {&errs.Error{Kind: errs.Unavailable, Message: "throttled", RetryAfter: 7 * time.Second}, 503},
		"fault":       {errors.New("secret details"), 500},
	} {
		faulty.set(func(context.Context) (io.ReadCloser, error) { return nil, c.err })
		r := l.Do("GET", path, "").Want(c.status).HasHeader("Content-Disposition", "")
		if strings.Contains(r.Text, "secret") || c.status == 503 && r.Header.Get("Retry-After") != "7" {
			t.Errorf("%s: %s", name, r.Text)
		}
		l.Do("HEAD", path, "").Want(200)
	}
	for name, content := range map[string]io.Reader{
		"broken": io.MultiReader(strings.NewReader("half"), brokenReader{}),
		"short":  strings.NewReader("half"),
	} {
		faulty.set(func(context.Context) (io.ReadCloser, error) { return io.NopCloser(content), nil })
		resp, err := l.Client().Get(l.URL + path)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		if err == nil {
			t.Errorf("%s: the download looks complete", name)
		}
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("the disk is broken") }

// A client that disconnects during a download is not logged as an error.
func TestClientDisconnectsDuringDownload(t *testing.T) {
	t.Parallel()
	slow := &openStorage{}
	l := startLibrary(t, slow.wrap)
	slow.set(func(ctx context.Context) (io.ReadCloser, error) { return io.NopCloser(endless{ctx}), nil })
	path, _ := l.add("texts", strings.Repeat("x", maxFile))
	conn := l.Dial()
	_, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\nX-Request-Id: disconnecting\r\n\r\n")
	l.Must(err)
	_, err = conn.Read(make([]byte, 1000))
	l.Must(err)
	l.Must(conn.Close())
	if record := l.Logs.Of("disconnecting"); record["level"] == "ERROR" || record["status"] != 200.0 {
		t.Errorf("%v", record)
	}
}

// endless is a content that is read slowly, until its context ends.
type endless struct{ context.Context }

func (e endless) Read(p []byte) (int, error) {
	select {
	case <-e.Done():
		return 0, e.Err()
	case <-time.After(time.Millisecond):
		return len(p) / 16, nil
	}
}

func TestPresignedDownload(t *testing.T) {
	t.Parallel()
	var got driver.SignedHeaders
	l := startLibrary(t, func(o *binary.Options, b *files.Options) {
		o.Storage = signStorage{Storage: o.Storage,
			sign: func(hash string, h driver.SignedHeaders, expiry time.Duration) (string, error) {
				got = h
				return fmt.Sprintf("https://storage.example/%s?for=%s", hash, expiry), nil
			}}
		b.Presign = time.Minute
	})
	path, hash := l.add("pages", "<html>", "Content-Type", "text/html", "X-Filename", "x.html")
	l.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	r := l.Do("GET", path, "", "Range", "bytes=0-1").Want(302).HasHeader("Cache-Control", "no-store")
	r.HasHeader("Location", "https://storage.example/"+hash+"?for=1m0s")
	if want := (driver.SignedHeaders{
		ContentType: "text/html", ContentDisposition: `attachment; filename="x.html"`,
		CacheControl: "private, no-cache",
	}); got != want {
		t.Errorf("%v", got)
	}
	l.Do("GET", path, "", "If-None-Match", `"`+hash+`"`).Want(304)
	l.Do("GET", path, "", "If-None-Match", `"other"`).Want(302) // which is no tag of the storage either
	l.Do("HEAD", path, "").Want(200).HasHeader("Content-Length", "6")
	// Clients send conditions with the redirected request as well. The storage has other tags, and the date of the
	// content, which may be older than the file: what holds here would fail there.
	const old = "Mon, 02 Jan 2006 15:04:05 GMT"
	contents := map[int]string{200: "<html>", 206: "<h"}
	for _, c := range []struct {
		name, value string
		status      int
	}{
		{"If-Modified-Since", old, 206}, {"If-Unmodified-Since", "Fri, 31 Dec 2999 23:59:59 GMT", 206},
		{"If-Range", `"of the storage"`, 302}, {"If-Range", `W/"of the storage"`, 302},
		{"If-Match", `"` + hash + `"`, 206}, {"If-Match", "*", 206}, {"If-Range", `"` + hash + `"`, 206},
		{"If-Range", old, 200},
	} {
		if r := l.Do("GET", path, "", "Range", "bytes=0-1", c.name,
			c.value).Want(c.status); r.Text != contents[c.status] {
			t.Errorf("%s: %s: %q", c.name, c.value, r.Text)
		}
	}
	l.Do("GET", "/files/Locked/emma/pages/0", "").Want(401)
}
