package s3storage_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"
	"time"

	"belfry/pkg/binary/driver"
	"belfry/pkg/binary/s3storage"
	"belfry/pkg/errs"
	"belfry/test/backing"
	"belfry/test/kit"
)

// options are those of a storage on a server, independent of the environment.
func options(server *backing.S3Server) s3storage.Options {
	return s3storage.Options{
		Bucket: server.Bucket, Region: server.Region, Endpoint: server.Endpoint,
		AccessKey: server.AccessKey, SecretKey: server.SecretKey, RootCAs: server.RootCAs,
		IdleTimeout: kit.Limit,
	}
}

// fastRetry sets a short backoff between attempts.
func fastRetry(o s3storage.Options) s3storage.Options {
	o.SetBackoff(50 * time.Millisecond)
	return o
}

// client requests signed URLs.
func client(server *backing.S3Server) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: server.RootCAs}}}
}

func open(t *testing.T, o s3storage.Options) *s3storage.Storage {
	t.Helper()
	s, err := s3storage.Open(t.Context(), o)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantKind(t *testing.T, err error, kind errs.Kind) {
	t.Helper()
	if err == nil || errs.KindOf(err) != kind {
		t.Fatalf("got the error %v of kind %q, want kind %q", err, errs.KindOf(err), kind)
	}
}

// random returns random bytes that depend on the seed.
func random(seed string, size int) []byte {
	c := make([]byte, size)
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(seed))).Read(c)
	return c
}

func hashOf(c []byte) string {
	sum := sha256.Sum256(c)
	return hex.EncodeToString(sum[:])
}

// stage returns a stage with a content. It is discarded at the end of the test.
func stage(t *testing.T, s driver.Storage, c []byte) driver.Staged {
	t.Helper()
	staged, err := s.Stage(t.Context())
	must(t, err)
	t.Cleanup(staged.Discard)
	_, err = staged.Write(c)
	must(t, err)
	return staged
}

// put stages, commits and discards a content.
func put(ctx context.Context, s driver.Storage, c []byte) error {
	staged, err := s.Stage(ctx)
	if err != nil {
		return err
	}
	defer staged.Discard()
	if _, err := staged.Write(c); err != nil {
		return err
	}
	return staged.Commit(ctx, hashOf(c))
}

func holds(t *testing.T, s driver.Storage, c []byte) {
	t.Helper()
	r, err := s.Open(t.Context(), hashOf(c), 0, -1)
	must(t, err)
	defer func() { _ = r.Close() }()
	got := bytes.NewBuffer(make([]byte, 0, len(c)+bytes.MinRead))
	_, err = got.ReadFrom(r)
	must(t, err)
	if !bytes.Equal(got.Bytes(), c) {
		t.Fatalf("%d bytes were read that are not the %d that were put", got.Len(), len(c))
	}
}

func lacks(t *testing.T, s driver.Storage, hash string) {
	t.Helper()
	_, found, err := s.Stat(t.Context(), hash)
	if err != nil || found {
		t.Fatalf("%s: found %v, error %v; want nothing", hash, found, err)
	}
}

// tidies asserts the number of abandoned stages. The storage has no stage in use.
func tidies(t *testing.T, s driver.Storage, want int) {
	t.Helper()
	n, err := s.RemoveAbandoned(t.Context(), time.Now().Add(time.Hour))
	must(t, err)
	if n != want {
		t.Fatalf("%d stages were removed, want %d", n, want)
	}
}

// proxy injects the faults of a network and of an overloaded server.
type proxy struct {
	*httptest.Server
	pass *httputil.ReverseProxy

	mu     sync.Mutex
	fault  http.HandlerFunc // answers instead, unless nil
	change func(op string, res *http.Response)
	count  map[string]int // requests of each operation
}

// front starts a proxy of a server, with or without TLS.
func front(t *testing.T, server *backing.S3Server, secure bool) *proxy {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: server.RootCAs}, DisableCompression: true}
	p := &proxy{count: map[string]int{}}
	p.pass = &httputil.ReverseProxy{
		Transport: transport,
		ErrorLog:  slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		// The signature covers the name of the host, which stays.
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, _ = strings.Cut(server.Endpoint, "://")
		},
		ModifyResponse: func(res *http.Response) error {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.change != nil {
				p.change(operation(res.Request), res)
			}
			return nil
		},
	}
	start := httptest.NewServer
	if secure {
		start = httptest.NewTLSServer
	}
	p.Server = start(p)
	t.Cleanup(p.Close)
	t.Cleanup(transport.CloseIdleConnections)
	return p
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	fault := p.fault
	p.count[operation(r)]++
	p.mu.Unlock()
	if fault == nil {
		fault = p.pass.ServeHTTP
	}
	fault(w, r)
}

// set replaces the handler of the proxy; nil passes requests on.
func (p *proxy) set(fault http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = fault
	clear(p.count)
}

func (p *proxy) requests(op string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count[op]
}

// options are the options of a storage that uses the proxy.
func (p *proxy) options(server *backing.S3Server) s3storage.Options {
	o := options(server)
	o.Endpoint = p.URL
	if cert := p.Certificate(); cert != nil {
		o.RootCAs = x509.NewCertPool()
		if server.RootCAs != nil {
			o.RootCAs = server.RootCAs.Clone()
		}
		o.RootCAs.AddCert(cert)
	}
	return o
}

// operation is the S3 name of a request.
func operation(r *http.Request) string {
	q := r.URL.Query()
	switch {
	case q.Get("x-id") != "":
		return q.Get("x-id")
	case r.Method == http.MethodPost && q.Has("uploads"):
		return "CreateMultipartUpload"
	case r.Method == http.MethodPost && q.Has("uploadId"):
		return "CompleteMultipartUpload"
	case r.Method == http.MethodGet && q.Has("uploads"):
		return "ListMultipartUploads"
	case r.Method == http.MethodGet && q.Has("list-type"):
		return "ListObjectsV2"
	case r.Method == http.MethodHead:
		return "Head"
	default:
		return r.Method
	}
}

// abort closes the connection.
func abort() { panic(http.ErrAbortHandler) }

// refuse answers with an error as S3 does.
func refuse(w http.ResponseWriter, r *http.Request, status int, code string) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.WriteHeader(status)
	fmt.Fprintf(w, `<Error><Code>%s</Code><Message>Not now.</Message></Error>`, code)
}
