// Package apitest starts the HTTP API for tests: over the file backend, with a
// client that checks replies, and with login.
package apitest

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/api"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/idempotent"
	"belfry/pkg/store/query"
)

// Front is a Server on a TCP port over the file backend, with stores Authors
// and Books as in the documentation.
type Front struct {
	*testing.T
	*httptest.Server
	API      *api.Server
	Books    *store.Store
	Requests *store.Store     // keys of requests
	Auth     *account.Service // nil without login
	Faults   *Faults
	Logs     *Log
	Events   *Events
}

// Start starts a Front. change may have another backend (driver.Backend), which Start does not close, and functions
// that set its options (func(*api.Options)), those of requests with a key (func(*idempotent.Options)) and those of its
// HTTP server (func(*http.Server)).
func Start(t *testing.T, change ...any) *Front {
	t.Helper()
	f := &Front{T: t, Faults: &Faults{}, Logs: newLog(), Events: &Events{}}
	var keyed idempotent.Options
	o := api.Options{Logger: slog.New(slog.NewJSONHandler(f.Logs, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	f.stores(&o, f.backend(change))
	keyed.Requests = f.Requests
	apply(change, &keyed)
	o.Keyed = idempotent.New(keyed)
	apply(change, &o)
	f.Books = o.Stores["Books"]
	f.API = New(o)
	f.Server = httptest.NewUnstartedServer(nil)
	f.Config = f.API.HTTPServer()
	apply(change, f.Config)
	f.Start()
	t.Cleanup(f.Close)
	return f
}

// apply calls the functions that change a value.
func apply[T any](change []any, to *T) {
	for _, c := range change {
		if c, ok := c.(func(*T)); ok {
			c(to)
		}
	}
}

// backend returns the backend that a test passes, or a new one in a new folder.
func (f *Front) backend(change []any) driver.Backend {
	f.Helper()
	for _, c := range change {
		if given, ok := c.(driver.Backend); ok {
			return given
		}
	}
	made, err := filestore.Open(f.TempDir(), filestore.Options{})
	f.Must(err)
	f.Cleanup(func() { f.Must(made.Close()) })
	return made
}

func (f *Front) stores(o *api.Options, backend driver.Backend) {
	f.Helper()
	authors, err := store.Open(f.Context(), backend, store.Options{Name: "Authors"})
	f.Must(err)
	f.Books, err = store.Open(f.Context(), faulty{backend, f.Faults}, store.Options{
		Name: "Books", Private: []string{"secret"}, Outbox: f.Events,
		Indexes: []query.Index{{Name: "list.year", Fields: []string{"year"}}},
	})
	f.Must(err)
	store.NewSet([]*store.Store{authors, f.Books}, nil)
	f.Requests, err = store.Open(f.Context(), backend, idempotent.RequestsOptions("Requests"))
	f.Must(err)
	Expose(o, authors, config.Expose{URL: "/authors"})
	Expose(o, f.Books, config.Expose{URL: "/books", List: true})
}

// Must fails the test for an error.
func (f *Front) Must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// Reply is a reply whose body has been read.
type Reply struct {
	*http.Response
	Text  string // the body
	front *Front
}

// Do sends a request. headers are names and values in turn.
func (f *Front) Do(method, path, body string, headers ...string) Reply {
	f.Helper()
	r, err := http.NewRequestWithContext(f.Context(), method, f.URL+path, strings.NewReader(body))
	f.Must(err)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for pair := range slices.Chunk(headers, 2) {
		if name, value := pair[0], pair[1]; value == "" {
			r.Header.Del(name)
		} else {
			r.Header.Add(name, value)
		}
	}
	resp, err := f.Client().Do(r)
	f.Must(err)
	return f.Read(resp)
}

// Read reads a response to its end.
func (f *Front) Read(resp *http.Response) Reply {
	f.Helper()
	data, err := io.ReadAll(resp.Body)
	f.Must(err)
	f.Must(resp.Body.Close())
	return Reply{resp, string(data), f}
}

// Create makes a book and returns its entity tag.
func (f *Front) Create(uuid string) string {
	f.Helper()
	r := f.Do("POST", "/books", `{"uuid":"`+uuid+`","title":"Emma"}`).Want(201)
	return r.Header.Get("Etag")
}

// Alive checks that the server still does its work.
func (f *Front) Alive() {
	f.Helper()
	f.Do("GET", "/healthz", "").Want(200)
	f.Do("POST", "/books", `{"title":"Persuasion"}`).Want(201)
}

// Want checks the status and, for a problem, its form.
func (r Reply) Want(status int) Reply {
	r.front.Helper()
	if r.StatusCode != status {
		r.front.Fatalf("%s %s: status %d, want %d: %s", r.Request.Method, r.Request.URL, r.StatusCode, status, r.Text)
	}
	r.HasHeader("X-Content-Type-Options", "nosniff")
	if status >= 400 && r.Request.Method != "HEAD" {
		r.wantProblem()
	}
	return r
}

func (r Reply) wantProblem() {
	r.front.Helper()
	r.HasHeader("Content-Type", "application/problem+json")
	r.HasHeader("Cache-Control", "no-store")
	p := r.Problem()
	if p.Status != r.StatusCode || !strings.HasPrefix(p.Type, "urn:belfry:problem:") || p.Title == "" ||
		p.Instance != r.Header.Get("X-Request-Id") {
		r.front.Errorf("not a whole problem: %s", r.Text)
	}
}

// HasHeader checks a header of the reply.
func (r Reply) HasHeader(name, want string) Reply {
	r.front.Helper()
	if got := r.Header.Get(name); got != want {
		r.front.Errorf("%s: %q, want %q", name, got, want)
	}
	return r
}

// Says checks that a problem's detail holds a text.
func (r Reply) Says(text string) Reply {
	r.front.Helper()
	if !strings.Contains(r.Problem().Detail, text) {
		r.front.Errorf("detail %q does not say %q", r.Problem().Detail, text)
	}
	return r
}

// Problem is a problem document (RFC 9457).
type Problem struct {
	Type, Title, Detail, Instance string
	Status                        int
	Errors                        []struct{ Pointer, Message string }
}

// Problem decodes the body as a problem document.
func (r Reply) Problem() (p Problem) {
	r.front.Helper()
	r.JSON(&p)
	return p
}

// JSON decodes the body into v.
func (r Reply) JSON(v any) {
	r.front.Helper()
	if err := json.Unmarshal([]byte(r.Text), v); err != nil {
		r.front.Fatalf("not JSON: %q", r.Text)
	}
}

// Raw sends bytes over a connection of its own, ends its sending half when
// asked to, and reads one reply.
func (f *Front) Raw(text string, end bool) Reply {
	f.Helper()
	conn := f.Dial()
	// The server may answer and close before it has read everything.
	_, _ = io.WriteString(conn, text)
	if end {
		_ = conn.CloseWrite()
	}
	return f.Receive(conn)
}

// Dial opens a connection to the front until the test ends.
func (f *Front) Dial() *net.TCPConn {
	f.Helper()
	conn, err := (&net.Dialer{}).DialContext(f.Context(), "tcp", f.Listener.Addr().String())
	f.Must(err)
	f.Cleanup(func() { _ = conn.Close() })
	return conn.(*net.TCPConn)
}

// Receive reads one reply.
func (f *Front) Receive(conn net.Conn) Reply {
	f.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: "POST"})
	f.Must(err)
	return f.Read(resp)
}

// Log collects the log.
type Log struct {
	mu    sync.Mutex
	all   []string
	added sync.Cond
}

func newLog() *Log {
	l := &Log{}
	l.added.L = &l.mu
	return l
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(p))
	l.added.Broadcast()
	return len(p), nil
}

// Of waits for the record of a request, which is written after its reply.
func (l *Log) Of(request string) map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		for _, line := range l.all {
			var record map[string]any
			if json.Unmarshal([]byte(line), &record) == nil && record["request"] == request &&
				record["msg"] == "request" {
				return record
			}
		}
		l.added.Wait()
	}
}

// Lines returns what has been logged so far.
func (l *Log) Lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// Events collects the events of writes to Books.
type Events struct {
	mu  sync.Mutex
	all []event.Envelope
}

// Committed records an event.
func (e *Events) Committed(_ string, p driver.Pending) {
	var envelope event.Envelope
	if err := json.Unmarshal(p.Payload, &envelope); err != nil {
		panic(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, envelope)
}

// Last returns the last event.
func (e *Events) Last() event.Envelope {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.all[len(e.all)-1]
}

// First returns the first event.
func (e *Events) First() event.Envelope {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.all[0]
}

// Faults makes reading from the driver of Books fail.
type Faults struct {
	mu  sync.Mutex
	get func(context.Context) error
}

// Set makes reads fail with the error of get; nil lets them succeed.
func (f *Faults) Set(get func() error) {
	if get == nil {
		f.Hold(nil)
		return
	}
	f.Hold(func(context.Context) error { return get() })
}

// Hold is Set with the context of the read.
func (f *Faults) Hold(get func(context.Context) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.get = get
}

func (f *Faults) onGet(ctx context.Context) error {
	f.mu.Lock()
	get := f.get
	f.mu.Unlock()
	if get == nil {
		return nil
	}
	return get(ctx)
}

type faulty struct {
	driver.Backend
	faults *Faults
}

func (b faulty) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := b.Backend.Open(ctx, spec)
	return faultyStore{s, b.faults}, err
}

type faultyStore struct {
	driver.Store
	faults *Faults
}

func (s faultyStore) Get(ctx context.Context, uuid string) (driver.Record, bool, error) {
	if err := s.faults.onGet(ctx); err != nil {
		return driver.Record{}, false, err
	}
	return s.Store.Get(ctx, uuid)
}

// Coded returns what proxies that compress replies make of an entity tag: those that stay strong.
func Coded(tag string) []string {
	value := strings.Trim(tag, `"`)
	var all []string
	for _, coding := range []string{"-gzip", "--gzip", "-br", "-zstd", "-deflate"} {
		all = append(all, `"`+value+coding+`"`)
	}
	return all
}

// Weakened returns what proxies that compress replies make of an entity tag: those that are weak then.
func Weakened(tag string) []string { return []string{"W/" + tag, "W/" + Coded(tag)[0]} }
