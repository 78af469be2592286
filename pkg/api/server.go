package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/cors"

	"belfry/pkg/sse"
	"belfry/pkg/store"
)

// Defaults of Options.
const (
	// DefaultMaxBody leaves room for an object of the largest size together
	// with its mapped arrays: what was read can be written back as it is.
	DefaultMaxBody = 4 << 20
	DefaultMaxWait = 30 * time.Second
)

// Waiter knows when the work that a write caused has been done.
type Waiter interface {
	// Begin is called before the write. The subject goes into the context of
	// the write's event; wait returns nil once the consequences of the causes
	// are applied, and an error when its context ends before; end frees what
	// Begin took and is always called.
	Begin() (subject string, wait func(ctx context.Context, causes []store.Cause) error, end func())
}

// Restrict names the operations of a store that have no route.
type Restrict struct {
	Create, Update, Delete, Get bool
}

// Exposure makes a store a resource.
type Exposure struct {
	Store    string // a store of Options.Set
	URL      string // path of the collection: begins with a slash, no colon, no asterisk
	Restrict Restrict
	List     bool // GET on the collection
}

// Options are what a front is made of. Set is required when there are
// exposures; everything else may be left out.
type Options struct {
	Set       *store.Set
	Exposures []Exposure
	Binaries  []Binaries
	Live      *sse.Hub                    // nil: there are no events for browsers
	Waiter    Waiter                      // nil: Prefer: wait is not honoured
	Ready     func(context.Context) error // nil: always ready; the message of its *errs.Error is told on /readyz
	Registry  *prometheus.Registry        // nil: one of its own
	Logger    *slog.Logger                // nil: slog.Default
	MaxBody   int64                       // most bytes of a request body; 0: DefaultMaxBody
	MaxWait   time.Duration               // longest Prefer: wait; 0: DefaultMaxWait

	// Closed, when not nil, is why nothing but the health of the process is
	// told: what a program that is still starting answers.
	Closed func() error

	Auth    *Auth          // nil: nobody is ever logged in
	Proxies []netip.Prefix // whose X-Forwarded-For is believed

	Documents []Document
}

// Server is the HTTP front. It is safe for concurrent use.
type Server struct {
	Options
	echo          *echo.Echo
	authenticator *authenticator // nil without Auth
	forgery       *http.CrossOriginProtection
	origins       []string   // trusted besides the request's own
	cors          *cors.Cors // nil: pages of other origins read nothing
	metrics       *metrics
	unmatched     map[string]*route // requests that no route takes, by method
	exchanges     sync.Pool
	buffers       sync.Pool
	stopping      context.Context
	stop          context.CancelFunc
}

// New makes the front. It panics when an exposure names a store that is not
// in the set: configuration is checked before.
func New(o Options) *Server {
	s := &Server{Options: o, echo: echo.New()}
	s.applyDefaults()
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.exchanges.New = func() any { return new(exchange) }
	s.buffers.New = func() any { return new([]byte) }
	s.metrics = newMetrics(s.Registry)
	s.unmatched = s.metrics.unmatched()
	s.echo.HTTPErrorHandler = func(err error, c echo.Context) { s.fail(exchangeOf(c), err) }
	s.guardForgery()
	s.shareReplies()
	if s.Auth != nil {
		s.mountAuth()
	}
	for _, e := range s.Exposures {
		s.expose(e)
	}
	for _, b := range s.Binaries {
		s.attach(b)
	}
	if s.Live != nil {
		s.handleGet(eventsURL, s.events)
	}
	for _, d := range s.Documents {
		s.document(d)
	}
	s.mountHealth()
	return s
}

func (s *Server) applyDefaults() {
	if s.Registry == nil {
		s.Registry = prometheus.NewRegistry()
	}
	if s.Logger == nil {
		s.Logger = slog.Default()
	}
	if s.MaxBody == 0 {
		s.MaxBody = DefaultMaxBody
	}
	if s.MaxWait == 0 {
		s.MaxWait = DefaultMaxWait
	}
}

func (s *Server) expose(e Exposure) {
	var st *store.Store
	if s.Set != nil {
		st = s.Set.Store(e.Store)
	}
	if st == nil {
		panic("api: exposed store " + e.Store + " is not in the set")
	}
	r := &resource{server: s, store: st, url: strings.TrimRight(e.URL, "/")}
	one := r.url + "/:" + uuidParam
	if !e.Restrict.Create {
		s.handle(http.MethodPost, r.url, r.create)
	}
	if e.List {
		s.handleGet(r.url, r.list)
	}
	if !e.Restrict.Get {
		s.handleGet(one, r.get)
	}
	if !e.Restrict.Update {
		s.handle(http.MethodPut, one, r.replace)
		s.handle(http.MethodPatch, one, r.patch)
	}
	if !e.Restrict.Delete {
		s.handle(http.MethodDelete, one, r.delete)
	}
}

// handler answers a request, or returns why it can't.
type handler func(*exchange) error

// handle mounts a handler. Everything that a request of the route needs and
// that does not depend on the request is made here, once.
func (s *Server) handle(method, path string, h handler) {
	rt := s.metrics.route(method, path)
	s.echo.Add(method, path, func(c echo.Context) error {
		x := exchangeOf(c)
		x.route, x.params = rt, c
		if err := h(x); err != nil {
			s.fail(x, err)
		}
		return nil
	})
}

// handleGet mounts a handler for GET and HEAD; net/http drops the body of a
// reply to HEAD.
func (s *Server) handleGet(path string, h handler) {
	s.handle(http.MethodGet, path, h)
	s.handle(http.MethodHead, path, h)
}

// Handler returns the front as a handler, for whoever serves it.
func (s *Server) Handler() http.Handler { return s }

// Drain prepares the end: /readyz reports 503, so that nobody sends more, and
// requests that wait for the consequences of their write are answered at once.
// Writes in progress are not disturbed.
func (s *Server) Drain() { s.stop() }
