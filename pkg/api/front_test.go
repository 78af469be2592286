package api_test

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

	"belfry/pkg/api"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/query"
)

// front is a server on a TCP port over the file backend, with stores Authors
// and Books as in the documentation.
type front struct {
	*testing.T
	*httptest.Server
	api    *api.Server
	books  *store.Store
	faults *faults
	log    *lines
	events *events
}

// start makes a front. change may set options before it is built, and the
// HTTP server's afterwards.
func start(t *testing.T, change ...any) *front {
	t.Helper()
	f := &front{T: t, faults: &faults{}, log: newLines(), events: &events{}}
	backend, err := filestore.Open(t.TempDir(), filestore.Options{})
	f.must(err)
	t.Cleanup(func() { f.must(backend.Close()) })
	o := api.Options{
		Set:       f.stores(backend),
		Exposures: []api.Exposure{{Store: "Authors", URL: "/authors"}, {Store: "Books", URL: "/books", List: true}},
		Logger:    slog.New(slog.NewJSONHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, c := range change {
		if c, ok := c.(func(*api.Options)); ok {
			c(&o)
		}
	}
	f.books = o.Set.Store("Books")
	f.api = api.New(o)
	f.Server = httptest.NewUnstartedServer(nil)
	f.Config = f.api.HTTPServer()
	for _, c := range change {
		if c, ok := c.(func(*http.Server)); ok {
			c(f.Config)
		}
	}
	f.Start()
	t.Cleanup(f.Close)
	return f
}

func (f *front) stores(backend driver.Backend) *store.Set {
	f.Helper()
	authors, err := store.Open(f.Context(), backend, store.Options{Name: "Authors"})
	f.must(err)
	f.books, err = store.Open(f.Context(), faulty{backend, f.faults}, store.Options{
		Name: "Books", Private: []string{"secret"}, Outbox: f.events,
		Indexes: []query.Index{{Name: "list.year", Fields: []string{"year"}}},
	})
	f.must(err)
	return store.NewSet([]*store.Store{authors, f.books}, nil)
}

func (f *front) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// reply is an answer, read to its end.
type reply struct {
	*http.Response
	front *front
	body  string
}

// do sends a request. headers are names and values in turn.
func (f *front) do(method, path, body string, headers ...string) reply {
	f.Helper()
	r, err := http.NewRequestWithContext(f.Context(), method, f.URL+path, strings.NewReader(body))
	f.must(err)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		} else {
			r.Header.Add(headers[i], headers[i+1])
		}
	}
	resp, err := f.Client().Do(r)
	f.must(err)
	return f.read(resp)
}

func (f *front) read(resp *http.Response) reply {
	f.Helper()
	data, err := io.ReadAll(resp.Body)
	f.must(err)
	f.must(resp.Body.Close())
	return reply{resp, f, string(data)}
}

// create makes a book and returns its entity tag.
func (f *front) create(uuid string) string {
	f.Helper()
	r := f.do("POST", "/books", `{"uuid":"`+uuid+`","title":"Emma"}`).want(201)
	return r.Header.Get("Etag")
}

// alive checks that the server still does its work.
func (f *front) alive() {
	f.Helper()
	f.do("GET", "/healthz", "").want(200)
	f.do("POST", "/books", `{"title":"Persuasion"}`).want(201)
}

// want checks the status and, for a problem, its form.
func (r reply) want(status int) reply {
	r.front.Helper()
	if r.StatusCode != status {
		r.front.Fatalf("%s %s: status %d, want %d: %s", r.Request.Method, r.Request.URL, r.StatusCode, status, r.body)
	}
	r.header("X-Content-Type-Options", "nosniff")
	if status >= 400 && r.Request.Method != "HEAD" {
		r.wantProblem()
	}
	return r
}

func (r reply) wantProblem() {
	r.front.Helper()
	r.header("Content-Type", "application/problem+json")
	r.header("Cache-Control", "no-store")
	p := r.problem()
	if p.Status != r.StatusCode || !strings.HasPrefix(p.Type, "urn:belfry:problem:") || p.Title == "" ||
		p.Instance != r.Header.Get("X-Request-Id") {
		r.front.Errorf("not a whole problem: %s", r.body)
	}
}

// header checks a header of the reply.
func (r reply) header(name, want string) reply {
	r.front.Helper()
	if got := r.Header.Get(name); got != want {
		r.front.Errorf("%s: %q, want %q", name, got, want)
	}
	return r
}

// says checks that a problem's detail holds a text.
func (r reply) says(text string) reply {
	r.front.Helper()
	if !strings.Contains(r.problem().Detail, text) {
		r.front.Errorf("detail %q does not say %q", r.problem().Detail, text)
	}
	return r
}

type problemDoc struct {
	Type, Title, Detail, Instance string
	Status                        int
	Errors                        []struct{ Pointer, Message string }
}

func (r reply) problem() (p problemDoc) {
	r.front.Helper()
	r.json(&p)
	return p
}

func (r reply) json(v any) {
	r.front.Helper()
	if err := json.Unmarshal([]byte(r.body), v); err != nil {
		r.front.Fatalf("not JSON: %q", r.body)
	}
}

// raw sends bytes over a connection of its own, ends its sending half when
// asked to, and reads one reply.
func (f *front) raw(text string, end bool) reply {
	f.Helper()
	conn := f.dial()
	// The server may answer and close before it has read everything.
	_, _ = io.WriteString(conn, text)
	if end {
		_ = conn.CloseWrite()
	}
	return f.receive(conn)
}

func (f *front) dial() *net.TCPConn {
	f.Helper()
	conn, err := net.Dial("tcp", f.Listener.Addr().String())
	f.must(err)
	f.Cleanup(func() { _ = conn.Close() })
	return conn.(*net.TCPConn)
}

func (f *front) receive(conn net.Conn) reply {
	f.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: "POST"})
	f.must(err)
	return f.read(resp)
}

// lines collects the log.
type lines struct {
	mu    sync.Mutex
	all   []string
	added sync.Cond
}

func newLines() *lines {
	l := &lines{}
	l.added.L = &l.mu
	return l
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(p))
	l.added.Broadcast()
	return len(p), nil
}

// of waits for the record of a request, which is written after its reply.
func (l *lines) of(request string) map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		for _, line := range l.all {
			var record map[string]any
			if json.Unmarshal([]byte(line), &record) == nil && record["request"] == request && record["msg"] == "request" {
				return record
			}
		}
		l.added.Wait()
	}
}

// lines returns what has been logged so far.
func (l *lines) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// events collects what the writes of Books emit.
type events struct {
	mu  sync.Mutex
	all []event.Envelope
}

func (e *events) Committed(_ string, p driver.Pending) {
	var envelope event.Envelope
	if err := json.Unmarshal(p.Payload, &envelope); err != nil {
		panic(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, envelope)
}

func (e *events) last() event.Envelope {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.all[len(e.all)-1]
}

// faults makes reading from the driver of Books fail.
type faults struct {
	mu  sync.Mutex
	get func(context.Context) error
}

func (f *faults) set(get func() error) {
	if get == nil {
		f.hold(nil)
		return
	}
	f.hold(func(context.Context) error { return get() })
}

func (f *faults) hold(get func(context.Context) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.get = get
}

func (f *faults) onGet(ctx context.Context) error {
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
	faults *faults
}

func (b faulty) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := b.Backend.Open(ctx, spec)
	return faultyStore{s, b.faults}, err
}

type faultyStore struct {
	driver.Store
	faults *faults
}

func (s faultyStore) Get(ctx context.Context, uuid string) (driver.Record, bool, error) {
	if err := s.faults.onGet(ctx); err != nil {
		return driver.Record{}, false, err
	}
	return s.Store.Get(ctx, uuid)
}
