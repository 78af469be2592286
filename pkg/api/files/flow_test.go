package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/pkg/httpkit"
)

const (
	brief = 100 * time.Millisecond // for timeouts that must expire
	ample = time.Hour              // for timeouts that must not expire
)

// flow serves one handler with the timeouts of an HTTP server, and returns its address.
func flow(t *testing.T, change func(*http.Server), h httpkit.Handler) string {
	t.Helper()
	r := httpkit.NewRouter(httpkit.RouterOptions{Registry: prometheus.NewRegistry(),
		Logger: slog.New(slog.DiscardHandler)})
	r.HandleGet("/flow", h)
	r.Handle(http.MethodPut, "/flow", h)
	server := httptest.NewUnstartedServer(r)
	server.Config.ReadTimeout, server.Config.WriteTimeout = ample, ample
	change(server.Config)
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// short makes all timeouts of a server brief but those before a handler begins, which a busy machine may exceed.
func short(h *http.Server) {
	h.ReadTimeout, h.WriteTimeout = brief, brief
	h.ReadHeaderTimeout, h.IdleTimeout = ample, ample
}

func dialFlow(t *testing.T, address, request string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	return conn
}

// An upload that makes progress is not ended by the timeouts of other requests,
// and its reply arrives.
func TestLongUpload(t *testing.T) {
	t.Parallel()
	received := make(chan byte)
	address := flow(t, short, func(x *httpkit.Exchange) error {
		f := newInflow(x, ample)
		one := make([]byte, 1)
		for {
			if _, err := io.ReadFull(f, one); err != nil {
				return err
			}
			if one[0] == '.' {
				break
			}
			received <- one[0]
		}
		f.extendReply(ample)
		x.Send(http.StatusOK, "text/plain", []byte(strings.Repeat("x", 64<<10)+"done"))
		return nil
	})
	conn := dialFlow(t, address,
		"PUT /flow HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
	for began := time.Now(); time.Since(began) < 3*brief; {
		if _, err := io.WriteString(conn, "1\r\nx\r\n"); err != nil {
			t.Fatal(err)
		}
		select {
		case <-received:
		case <-time.After(ample):
			t.Fatal("the upload was interrupted")
		}
	}
	if _, err := io.WriteString(conn, "1\r\n.\r\n0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if reply, err := io.ReadAll(conn); err != nil || !strings.HasSuffix(string(reply), "done") {
		t.Errorf("%q, %v", reply, err)
	}
}

// A client that sends nothing, or too little, gets 408 and its connection is
// closed.
func TestStalledUpload(t *testing.T) {
	t.Parallel()
	address := flow(t, func(*http.Server) {}, func(x *httpkit.Exchange) error {
		f := newInflow(x, brief)
		_, err := io.Copy(io.Discard, f)
		f.extendReply(ample)
		return err
	})
	for name, send := range map[string]func(io.Writer) error{
		"nothing": func(io.Writer) error { return nil },
		"a byte at a time": func(w io.Writer) error {
			var cut error
			for began := time.Now(); cut == nil; _, cut = io.WriteString(w, "x") {
				if time.Since(began) > ample {
					return errors.New("the upload was never ended")
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			conn := dialFlow(t, address, "PUT /flow HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000000\r\n\r\n")
			sent := make(chan error, 1)
			go func() { sent <- send(&slowWriter{w: conn}) }()
			reply, _ := io.ReadAll(conn)
			if !strings.HasPrefix(string(reply), "HTTP/1.1 408 ") ||
				!strings.Contains(string(reply), "Connection: close") {
				t.Errorf("%q", reply)
			}
			_ = conn.Close()
			if err := <-sent; err != nil {
				t.Error(err)
			}
		})
	}
}

// slowWriter writes less than a window in the time for one.
type slowWriter struct {
	w    io.Writer
	last time.Time
}

func (s *slowWriter) Write(p []byte) (int, error) {
	for time.Since(s.last) < time.Millisecond {
		time.Sleep(100 * time.Microsecond)
	}
	s.last = time.Now()
	return s.w.Write(p)
}

// After the body has been read, the handler may take any time: net/http, which
// watches the connection, does not take an expired deadline for a client that has
// disconnected.
func TestHandlerMayTakeTimeAfterTheBody(t *testing.T) {
	t.Parallel()
	address := flow(t, short, func(x *httpkit.Exchange) error {
		f := newInflow(x, brief)
		if _, err := io.Copy(io.Discard, f); err != nil {
			return err
		}
		select {
		case <-x.Request.Context().Done():
			t.Error(context.Cause(x.Request.Context()))
		case <-time.After(3 * brief):
		}
		f.extendReply(ample)
		x.WriteHeader(http.StatusNoContent)
		return nil
	})
	conn := dialFlow(t, address, "PUT /flow HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello")
	if reply, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(reply), "HTTP/1.1 204 ") {
		t.Errorf("%q, %v", reply, err)
	}
}

func TestPaceCountsTheClientsTime(t *testing.T) {
	t.Parallel()
	p := pace{patience: time.Second}
	now := time.Now()
	check := func(want time.Duration) {
		t.Helper()
		if got := p.begin(now).Sub(now); got != want {
			t.Errorf("%v left, want %v", got, want)
		}
	}
	check(time.Second)
	p.end(10, 100*time.Millisecond)
	now = now.Add(time.Hour) // spent by the server
	check(900 * time.Millisecond)
	p.end(flowWindow-11, 800*time.Millisecond)
	check(100 * time.Millisecond)
	p.end(1, 50*time.Millisecond)
	check(time.Second) // the next window
}

// big exceeds the buffers of a connection.
const big = 24 << 20

func bigFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "big")
	err := os.WriteFile(path, nil, 0o600)
	if err == nil {
		err = os.Truncate(path, big)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// serveContent serves a content of length bytes, and sends the errors of
// copyContent to results.
func serveContent(open func() (io.Reader, error), length int64, patience time.Duration,
	results chan<- [2]error) httpkit.Handler {
	return func(x *httpkit.Exchange) error {
		content, err := open()
		if err != nil {
			return err
		}
		if c, ok := content.(io.Closer); ok {
			defer func() { _ = c.Close() }()
		}
		x.Header().Set("Content-Length", strconv.Itoa(big))
		x.WriteHeader(http.StatusOK)
		client, reading := copyContent(x, content, length, patience)
		if client == nil && reading == nil {
			reading = x.Request.Context().Err() // an expired deadline must not cancel the request
		}
		results <- [2]error{client, reading}
		return reading
	}
}

// A download that makes progress is not ended by the timeouts of other replies,
// whether the operating system sends a file or belfry copies a stream; one that
// stalls is.
func TestLongDownload(t *testing.T) {
	t.Parallel()
	path := bigFile(t)
	for name, open := range map[string]func() (io.Reader, error){
		"file":           func() (io.Reader, error) { return os.Open(path) },
		"part of a file": func() (io.Reader, error) { f, err := os.Open(path); return io.LimitReader(f, big), err },
		"stream": func() (io.Reader, error) {
			f, err := os.Open(path)
			return struct{ io.ReadCloser }{f}, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			results := make(chan [2]error, 1)
			address := flow(t, short, serveContent(open, big, ample, results))
			conn := dialFlow(t, address, "GET /flow HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			head := make([]byte, 1<<20)
			if _, err := io.ReadFull(conn, head); err != nil {
				t.Fatal(err)
			}
			for began := time.Now(); time.Since(began) < 3*brief; {
				time.Sleep(brief / 10) // as a slow client does
			}
			rest, err := io.Copy(io.Discard, conn)
			if whole := int64(bytes.Index(head, []byte("\r\n\r\n"))) + 4 + big; err != nil ||
				int64(len(head))+rest != whole {
				t.Errorf("%d bytes, %v", int64(len(head))+rest, err)
			}
			if errs := <-results; errs != [2]error{} {
				t.Error(errs)
			}
		})
		t.Run(name+", stalled", func(t *testing.T) {
			results := make(chan [2]error, 1)
			address := flow(t, func(*http.Server) {}, serveContent(open, big, brief, results))
			dialFlow(t, address, "GET /flow HTTP/1.1\r\nHost: x\r\n\r\n")
			if errs := <-results; !errors.Is(errs[0], os.ErrDeadlineExceeded) || errs[1] != nil {
				t.Error(errs)
			}
		})
		t.Run(name+", client disconnected", func(t *testing.T) {
			results := make(chan [2]error, 1)
			address := flow(t, func(*http.Server) {}, serveContent(open, big, ample, results))
			conn := dialFlow(t, address, "GET /flow HTTP/1.1\r\nHost: x\r\n\r\n")
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
			if errs := <-results; errs[0] == nil || errs[1] != nil {
				t.Error(errs)
			}
		})
	}
}

// The body is never longer than Content-Length; a shorter one is an error.
func TestDownloadOfAnotherLength(t *testing.T) {
	t.Parallel()
	path := bigFile(t)
	file := func() (io.Reader, error) { return os.Open(path) }
	for name, c := range map[string]struct {
		open   func() (io.Reader, error)
		length int64
		failed bool
	}{
		"longer file": {file, 1000, false},
		"longer part": {func() (io.Reader, error) { f, err := file(); return io.LimitReader(f, big), err }, 1000,
			false},
		"shorter file": {file, big + 1, true},
		"shorter part": {func() (io.Reader, error) { f, err := file(); return io.LimitReader(f, 10), err }, 1000,
			true},
		"longer stream": {func() (io.Reader, error) {
			return struct{ io.Reader }{bytes.NewReader(make([]byte, big))}, nil
		}, 1000, false},
		"broken stream": {func() (io.Reader, error) {
			return io.MultiReader(strings.NewReader("x"), iotest.ErrReader(errors.New("gone"))), nil
		}, big, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			x := &httpkit.Exchange{ResponseWriter: w}
			content, err := c.open()
			if err != nil {
				t.Fatal(err)
			}
			client, reading := copyContent(x, content, c.length, ample)
			if client != nil || (reading != nil) != c.failed {
				t.Errorf("%v, %v", client, reading)
			}
			if !c.failed && int64(w.Body.Len()) != c.length {
				t.Errorf("%d bytes", w.Body.Len())
			}
		})
	}
}

// sendRecorder counts the files and bytes that it is given to send.
type sendRecorder struct {
	http.ResponseWriter
	files, bytes int64
}

func (s *sendRecorder) ReadFrom(r io.Reader) (int64, error) {
	if limited, ok := r.(*io.LimitedReader); ok && limited.N <= flowWindow {
		if _, ok := limited.R.(syscall.Conn); ok {
			s.files++
		}
	}
	n, err := io.Copy(io.Discard, r)
	s.bytes += n
	return n, err
}

// net/http receives a file as a file, in pieces, so that the operating system can
// send it (sendfile).
func TestFileIsSentByTheSystem(t *testing.T) {
	t.Parallel()
	f, err := os.Open(bigFile(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	w := &sendRecorder{ResponseWriter: httptest.NewRecorder()}
	x := &httpkit.Exchange{ResponseWriter: w}
	if client, reading := copyContent(x, f, big, ample); client != nil || reading != nil {
		t.Fatal(client, reading)
	}
	if w.bytes != big || w.files != big/flowWindow {
		t.Errorf("%d bytes in %d pieces", w.bytes, w.files)
	}
}

func TestUploadsAreSlowedDownToTheirLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		r := httpkit.NewRouter(httpkit.RouterOptions{Registry: registry, Logger: slog.New(slog.DiscardHandler)})
		limits := httpkit.NewLimits(config.RequestLimits{Address: config.Rates{UploadBytes: 64 << 10}}, nil, registry)
		calls := httpkit.NewCalls(httpkit.CallOptions{Limits: limits})
		r.Handle(http.MethodPut, "/flow", calls.Limit(httpkit.Upload, func(x *httpkit.Exchange) error {
			_, err := io.Copy(io.Discard, newInflow(x, ample))
			return err
		}))
		began := time.Now()
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(http.MethodPut, "/flow", bytes.NewReader(make([]byte, 1<<20))))
		// Ten seconds' worth at once, then 384 KiB.
		if took := time.Since(began).Round(100 * time.Millisecond); w.Code != 200 || took != 6*time.Second {
			t.Errorf("status %d after %s", w.Code, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		r.ServeHTTP(httptest.NewRecorder(),
			httptest.NewRequestWithContext(ctx, http.MethodPut, "/flow", bytes.NewReader(make([]byte, 1<<20))))
		if took := time.Since(began); took > time.Second {
			t.Errorf("an upload whose client has disconnected ends after %s", took)
		}
	})
}
