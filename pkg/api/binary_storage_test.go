package api_test

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

	"belfry/pkg/api"
	"belfry/pkg/binary"
	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

// opening is a storage whose contents are opened by a function, once it is set.
type opening struct {
	driver.Storage
	open atomic.Pointer[func(context.Context) (io.ReadCloser, error)]
}

func (s *opening) set(open func(context.Context) (io.ReadCloser, error)) { s.open.Store(&open) }

// over puts the storage around that of a service.
func (s *opening) over(o *binary.Options, _ *api.Binaries) { s.Storage, o.Storage = o.Storage, s }

func (s *opening) Open(ctx context.Context, hash string, offset, length int64) (io.ReadCloser, error) {
	if open := s.open.Load(); open != nil {
		return (*open)(ctx)
	}
	return s.Storage.Open(ctx, hash, offset, length)
}

// signing is a storage that clients can ask themselves.
type signing struct {
	driver.Storage
	sign func(hash string, h driver.SignedHeaders, lasting time.Duration) (string, error)
}

func (s signing) Sign(_ context.Context, hash string, h driver.SignedHeaders, lasting time.Duration) (string, error) {
	return s.sign(hash, h, lasting)
}

// A content that is lost or breaks off is no shorter content.
func TestUnreadableContent(t *testing.T) {
	faulty := &opening{}
	l := shelve(t, faulty.over)
	path, hash := l.add("texts", strings.Repeat("x", 100<<10))
	l.must(l.storage.Delete(t.Context(), hash))
	if r := l.do("GET", path, "").want(500); strings.Contains(r.body, hash) || strings.Contains(r.body, l.folder) {
		t.Errorf("told: %s", r.body)
	}
	for name, c := range map[string]struct {
		err    error
		status int
	}{
		"away":  {&errs.Error{Kind: errs.Unavailable, Message: "throttled", RetryAfter: 7 * time.Second}, 503},
		"fault": {errors.New("secret details"), 500},
	} {
		faulty.set(func(context.Context) (io.ReadCloser, error) { return nil, c.err })
		r := l.do("GET", path, "").want(c.status).header("Content-Disposition", "")
		if strings.Contains(r.body, "secret") || c.status == 503 && r.Header.Get("Retry-After") != "7" {
			t.Errorf("%s: %s", name, r.body)
		}
		l.do("HEAD", path, "").want(200)
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
			t.Errorf("%s: it looks whole", name)
		}
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("the disk is broken") }

// A client that leaves in the middle of a download is no fault in the log.
func TestClientGoneInDownload(t *testing.T) {
	slow := &opening{}
	l := shelve(t, slow.over)
	slow.set(func(ctx context.Context) (io.ReadCloser, error) { return io.NopCloser(endless{ctx}), nil })
	path, _ := l.add("texts", strings.Repeat("x", maxFile))
	conn := l.dial()
	_, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\nX-Request-Id: leaving\r\n\r\n")
	l.must(err)
	_, err = conn.Read(make([]byte, 1000))
	l.must(err)
	l.must(conn.Close())
	if record := l.log.of("leaving"); record["level"] == "ERROR" || record["status"] != 200.0 {
		t.Errorf("%v", record)
	}
}

// endless is a content that comes slowly, until its context ends.
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
	var got driver.SignedHeaders
	l := shelve(t, func(o *binary.Options, b *api.Binaries) {
		o.Storage = signing{Storage: o.Storage, sign: func(hash string, h driver.SignedHeaders, lasting time.Duration) (string, error) {
			got = h
			return fmt.Sprintf("https://storage.example/%s?for=%s", hash, lasting), nil
		}}
		b.Presign = time.Minute
	})
	path, hash := l.add("pages", "<html>", "Content-Type", "text/html", "X-Filename", "x.html")
	l.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	r := l.do("GET", path, "", "Range", "bytes=0-1").want(302).header("Cache-Control", "no-store")
	r.header("Location", "https://storage.example/"+hash+"?for=1m0s")
	if want := (driver.SignedHeaders{
		ContentType: "text/html", ContentDisposition: `attachment; filename="x.html"`, CacheControl: "private, no-cache",
	}); got != want {
		t.Errorf("%v", got)
	}
	l.do("GET", path, "", "If-None-Match", `"`+hash+`"`).want(304)
	l.do("HEAD", path, "").want(200).header("Content-Length", "6")
	l.do("GET", "/files/Locked/emma/pages/0", "").want(401)
}
