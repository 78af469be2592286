package importer

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/schema"
)

// bookSchema is what the books of these tests have to be like.
const bookSchema = `{
	"$schema": "https://json-schema.org/draft/2019-09/schema",
	"properties": {"title": {"type": "string"}, "year": {"type": "integer"}}
}`

// Front returns the front of two stores, the second of which is closed to creations. The tests outside of the package
// set it: the front has the console, which imports by this package.
var Front func(books, closed *store.Store) http.Handler

// server is the real front over the file backend, behind a gate in which tests
// inject faults.
type server struct {
	testing.TB
	store    *store.Store
	schema   *schema.Schema
	url      string // of the store's collection
	requests atomic.Int64

	mu   sync.Mutex
	gate func(n int64, w http.ResponseWriter, r *http.Request, next http.Handler)
}

func serve(t testing.TB) *server {
	t.Helper()
	s := &server{TB: t}
	backend, err := filestore.Open(t.TempDir(), filestore.Options{})
	s.must(err)
	t.Cleanup(func() { s.must(backend.Close()) })
	s.schema, err = schema.Compile("book.json", []byte(bookSchema))
	s.must(err)
	s.store, err = store.Open(t.Context(), backend, store.Options{Name: "Books", Schema: s.schema})
	s.must(err)
	store.NewSet([]*store.Store{s.store}, nil)
	closed, err := store.Open(t.Context(), backend, store.Options{Name: "Closed"})
	s.must(err)
	front := Front(s.store, closed)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := s.requests.Add(1)
		s.mu.Lock()
		gate := s.gate
		s.mu.Unlock()
		if gate == nil {
			front.ServeHTTP(w, r)
			return
		}
		gate(n, w, r, front)
	}))
	t.Cleanup(web.Close)
	s.url = web.URL + "/books"
	return s
}

// fault sets the gate; nil removes it. Requests count from 1 again.
func (s *server) fault(gate func(n int64, w http.ResponseWriter, r *http.Request, next http.Handler)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests.Store(0)
	s.gate = gate
}

func (s *server) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// run imports an input whole.
func (s *server) run(o Options, input string) (Progress, []string, error) {
	s.Helper()
	return s.runWith(s.Context(), o, &fakeClock{}, input)
}

func (s *server) runWith(ctx context.Context, o Options, c clock, input string) (Progress, []string, error) {
	s.Helper()
	if o.URL == "" {
		o.URL = s.url
	}
	var failures []string
	o.OnFailure = func(f Failure) { failures = append(failures, f.String()) }
	i := New(o)
	i.sender.pause.clock = c
	err := i.Run(ctx, strings.NewReader(input))
	return i.Progress(), failures, err
}

// objects are all objects of the store by uuid.
func (s *server) objects() map[string]object.Object {
	s.Helper()
	all := map[string]object.Object{}
	var after []byte
	for {
		page, next, err := s.store.Scan(s.Context(), after, 500)
		s.must(err)
		for _, stored := range page {
			o, err := stored.Object()
			s.must(err)
			all[stored.UUID] = o
		}
		if next == nil {
			return all
		}
		after = next
	}
}

func (s *server) wantObjects(n int) map[string]object.Object {
	s.Helper()
	all := s.objects()
	if len(all) != n {
		s.Fatalf("the store has %d objects instead of %d", len(all), n)
	}
	return all
}

func (s *server) wantProgress(got, want Progress) {
	s.Helper()
	want.Bytes = got.Bytes
	if got != want {
		s.Fatalf("progress\n got %+v\nwant %+v", got, want)
	}
}

func (s *server) wantKind(err error, kind errs.Kind) {
	s.Helper()
	if err == nil || errs.KindOf(err) != kind {
		s.Fatalf("got %v; want an error that is %s", err, kind)
	}
}

// fakeClock passes as fast as it is slept on.
type fakeClock struct {
	mu    sync.Mutex
	slept time.Duration
}

func (c *fakeClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC).Add(c.slept)
}

func (c *fakeClock) sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slept += d
	return ctx.Err()
}
