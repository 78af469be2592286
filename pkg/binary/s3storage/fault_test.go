package s3storage_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/binary/s3storage"
	"belfry/pkg/errs"
	"belfry/test/backing"
	"belfry/test/kit"
)

// acts are the operations of a storage, by name.
func acts(s *s3storage.Storage, small, large []byte) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Ping":        s.Ping,
		"put a small": func(ctx context.Context) error { return put(ctx, s, small) },
		"put a large": func(ctx context.Context) error { return put(ctx, s, large) },
		"Stat":        func(ctx context.Context) error { _, _, err := s.Stat(ctx, hashOf(small)); return err },
		"Open": func(ctx context.Context) error {
			r, err := s.Open(ctx, hashOf(small), 0, -1)
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, r)
			return errors.Join(err, r.Close())
		},
		"List": func(ctx context.Context) error { _, _, err := s.List(ctx, "", 10); return err },
		"RemoveAbandoned": func(ctx context.Context) error {
			_, err := s.RemoveAbandoned(ctx, time.Now().Add(-time.Hour))
			return err
		},
		// Not the content that the others use.
		"Delete": func(ctx context.Context) error { return s.Delete(ctx, hashOf([]byte("another"))) },
	}
}

// wantUnavailable asserts that every operation fails and can be repeated.
func wantUnavailable(t *testing.T, acts map[string]func(context.Context) error) {
	t.Helper()
	t.Run("unavailable", func(t *testing.T) {
		for name, act := range acts {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				err := act(t.Context())
				wantKind(t, err, errs.Unavailable)
				if e := (*errs.Error)(nil); !errors.As(err, &e) || e.RetryAfter <= 0 {
					t.Errorf("%v does not say when to try again", err)
				}
			})
		}
	})
}

// What was acknowledged is there after a crash of the server.
func TestStorageRecoversWithItsServer(t *testing.T) {
	t.Parallel()
	for name, start := range backing.S3Servers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t)
			s := open(t, fastRetry(options(server)))
			small, large := random("small", 4096), random("large", s3storage.PartSize+100)
			must(t, put(t.Context(), s, small))
			must(t, put(t.Context(), s, large))
			server.Kill()
			wantUnavailable(t, acts(s, small, large))
			server.Restart(t)
			holds(t, s, small)
			holds(t, s, large)
			for name, act := range acts(s, small, large) {
				if err := act(t.Context()); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			holds(t, s, small)
			holds(t, s, large)
		})
	}
}

// A server refuses every request, and then every other one.
func TestThrottledRequestsAreRetried(t *testing.T) {
	t.Parallel()
	server := backing.S3(t)
	p := front(t, server, true)
	s := open(t, fastRetry(p.options(server)))
	small, large := random("small", 4096), random("large", s3storage.PartSize+100)
	must(t, put(t.Context(), s, small))

	for code, status := range map[string]int{"SlowDown": http.StatusServiceUnavailable,
		"OperationAborted": http.StatusConflict} {
		t.Run(code, func(t *testing.T) {
			p.set(func(w http.ResponseWriter, r *http.Request) { refuse(w, r, status, code) })
			wantUnavailable(t, acts(s, small, large))
			if n := p.requests("PutObject"); n != s3storage.Attempts {
				t.Errorf("it was tried %d times, want %d", n, s3storage.Attempts)
			}
			var turn atomic.Int64
			p.set(func(w http.ResponseWriter, r *http.Request) {
				if turn.Add(1)%2 == 1 {
					refuse(w, r, status, code)
					return
				}
				p.pass.ServeHTTP(w, r)
			})
			for name, act := range acts(s, small, large) {
				if err := act(t.Context()); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			p.set(nil)
			holds(t, s, large)
		})
	}
}

func TestIdleConnectionsTimeOut(t *testing.T) {
	t.Parallel()
	server := backing.S3(t)
	p := front(t, server, true)
	o := fastRetry(p.options(server))
	o.IdleTimeout = 50 * time.Millisecond
	s := open(t, o)
	o.IdleTimeout = kit.Limit
	patient := open(t, o)
	small, large := random("small", 4096), random("large", s3storage.PartSize+100)

	ended := make(chan struct{})
	for name, silent := range map[string]http.HandlerFunc{
		"it reads the request and does not respond": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-ended
		},
		"it does not read the request": func(http.ResponseWriter, *http.Request) { <-ended },
	} {
		t.Run(name, func(t *testing.T) {
			p.set(silent)
			wantUnavailable(t, acts(s, small, large))
		})
	}
	t.Run("it stops in the middle of a response", func(t *testing.T) {
		p.set(nil)
		must(t, put(t.Context(), patient, large))
		o.IdleTimeout = time.Second / 2
		p.set(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(large)))
			_, _ = w.Write(large[:len(large)/2])
			_ = http.NewResponseController(w).Flush()
			<-ended
		})
		// A slow machine needs a longer timeout to reach the response.
		var r io.ReadCloser
		kit.WaitUntil(t, func() (err error) {
			o.IdleTimeout *= 2
			r, err = open(t, o).Open(t.Context(), hashOf(large), 0, -1)
			return err
		})
		_, err := io.Copy(io.Discard, r)
		wantKind(t, err, errs.Unavailable)
		must(t, r.Close())
	})
	t.Run("the caller cancels first", func(t *testing.T) {
		p.set(func(http.ResponseWriter, *http.Request) { <-ended })
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		wantKind(t, put(ctx, patient, small), errs.Canceled)
	})
	close(ended)
}

// The connection of the first request of each operation is closed: while S3 reads
// the request, and after S3 has handled it and before it responds.
func TestClosedConnectionsAreRetried(t *testing.T) {
	t.Parallel()
	server := backing.S3(t)
	p := front(t, server, true)
	s := open(t, fastRetry(p.options(server)))
	s.SetSegmentParts(1)
	small, large := random("small", 100_000), random("large", s3storage.PartSize+100)
	for op, c := range map[string][]byte{
		"PutObject": small, "DeleteObject": small, "Head": small,
		"CreateMultipartUpload": large, "UploadPart": large, "UploadPartCopy": large, "CompleteMultipartUpload": large,
	} {
		for name, breaks := range map[string]http.HandlerFunc{
			"during the request": func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.CopyN(io.Discard, r.Body, 10_000)
				abort()
			},
			"before the response": func(_ http.ResponseWriter, r *http.Request) {
				p.pass.ServeHTTP(httptest.NewRecorder(), r)
				abort()
			},
		} {
			t.Run(op+" "+name, func(t *testing.T) {
				var broken atomic.Bool
				p.set(func(w http.ResponseWriter, r *http.Request) {
					if operation(r) == op && broken.CompareAndSwap(false, true) {
						breaks(w, r)
					}
					p.pass.ServeHTTP(w, r)
				})
				must(t, put(t.Context(), s, c))
				if _, found, err := s.Stat(t.Context(), hashOf(c)); err != nil || !found {
					t.Fatalf("found %v, error %v", found, err)
				}
				holds(t, s, c)
				must(t, s.Delete(t.Context(), hashOf(c)))
				lacks(t, s, hashOf(c))
				if !broken.Load() {
					t.Fatal("no such request was made")
				}
			})
		}
	}
	p.set(nil)
	// A lost response to CreateMultipartUpload leaves an upload with an unknown id.
	// Another storage removes it.
	if n, err := open(t, options(server)).RemoveAbandoned(t.Context(), time.Now().Add(time.Hour)); err != nil ||
		n == 0 {
		t.Errorf("%d stages are abandoned, error %v; want some", n, err)
	}
}

func TestTruncatedAndDamagedResponsesAreDetected(t *testing.T) {
	t.Parallel()
	server := backing.S3(t)
	p := front(t, server, true)
	s := open(t, fastRetry(p.options(server)))
	large := random("large", s3storage.PartSize+100)
	must(t, put(t.Context(), s, large))
	for name, test := range map[string]struct {
		change func(*http.Response)
		kind   errs.Kind
	}{
		"truncated": {func(res *http.Response) { res.Body = &broken{res.Body, 4 << 20} }, errs.Unavailable},
		"damaged":   {func(res *http.Response) { res.Body = &damaged{ReadCloser: res.Body} }, errs.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			p.mu.Lock()
			p.change = func(_ string, res *http.Response) { test.change(res) }
			p.mu.Unlock()
			r, err := s.Open(t.Context(), hashOf(large), 0, -1)
			must(t, err)
			defer func() { _ = r.Close() }()
			_, err = io.Copy(io.Discard, r)
			wantKind(t, err, test.kind)
		})
	}
}

// broken is a body that fails after some bytes.
type broken struct {
	io.ReadCloser
	left int
}

func (b *broken) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, errors.New("broken")
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// damaged is a body whose first byte is wrong.
type damaged struct {
	io.ReadCloser
	done bool
}

func (d *damaged) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	if n > 0 && !d.done {
		p[0]++
		d.done = true
	}
	return n, err
}
