package httpkit

import (
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"belfry/internal/baseurl"
	"belfry/internal/logctx"
	"belfry/pkg/errs"
)

// RouterOptions are the options of a Router. All fields but MaxBody, Proxies
// and ProxyHeader are required.
type RouterOptions struct {
	Registry *prometheus.Registry
	Logger   *slog.Logger
	MaxBody  int64          // most bytes of a body that ReadObject reads
	Proxies  []netip.Prefix // trusted to report the address of the client
	Filters  []Filter       // called in order before the request is routed

	ProxyHeader string // in which proxies report that: XForwardedFor, the default, or Forwarded

	Development bool // problem documents say which rule denies

	Base    baseurl.URL // where clients reach the server
	Help    string      // path of the page that has a heading for each type of problem; "": none is served
	Refusal RefusalPage // of failures that people see; nil: all get problem documents
}

// Handler replies to a request, or returns the error to reply with.
type Handler func(*Exchange) error

// Filter is called before a request is routed. The request is routed unless the
// filter has replied or returns an error, which is replied with and closes the
// connection.
type Filter func(*Exchange) error

// Router routes requests to handlers. It gives each request an Exchange, turns
// errors and panics into problem documents, and counts and logs every request.
// It is safe for concurrent use once all routes have been added.
type Router struct {
	echo      *echo.Echo
	log       *slog.Logger
	maxBody   int64
	forwarded *forwarding
	filters   []Filter
	metrics   *metrics
	unmatched map[string]*route // requests that match no route, by method
	pages     map[string]bool   // paths of routes that are not of the API
	navigated map[string]bool   // paths of routes of the API that browsers are led to
	unexposed map[string]string // why there is no route, by method and path
	rest      Handler           // of GET and HEAD without a route; nil: 404
	exchanges sync.Pool
	buffers   sync.Pool
	bodies    *bodies
	arrivals  *arrivals

	development bool
	help        string
	refusal     RefusalPage
	base        baseurl.URL
}

// NewRouter returns a Router without routes.
func NewRouter(o RouterOptions) *Router {
	r := &Router{
		echo: echo.New(), log: slog.New(logctx.NewHandler(o.Logger.Handler())), maxBody: o.MaxBody,
		forwarded: newForwarding(o.Proxies, o.ProxyHeader, o.Logger), filters: slices.Clone(o.Filters),
		metrics:     newMetrics(o.Registry),
		development: o.Development, pages: map[string]bool{}, navigated: map[string]bool{}, help: o.Help,
		refusal: o.Refusal, base: o.Base, unexposed: map[string]string{}, bodies: newBodies(o.MaxBody),
		arrivals: newArrivals(),
	}
	r.unmatched = r.metrics.unmatched()
	r.exchanges.New = func() any { return new(Exchange) }
	r.buffers.New = func() any { return new([]byte) }
	r.echo.HTTPErrorHandler = func(err error, c echo.Context) {
		x := exchangeOf(c)
		x.unexposed = r.unexposed[x.Request.Method+" "+c.Path()]
		r.unrouted(x, err)
	}
	return r
}

// unrouted replies to a request that has no route.
func (r *Router) unrouted(x *Exchange, err error) {
	read := x.Request.Method == http.MethodGet || x.Request.Method == http.MethodHead
	if r.rest == nil || !read || !errors.Is(err, echo.ErrNotFound) {
		x.fail(err)
		return
	}
	if err := r.rest(x); err != nil {
		x.fail(err)
	}
}

// HandleUnmatched handles GET and HEAD of paths that no route matches. The handler
// returns ErrNoRoute for unknown routes.
func (r *Router) HandleUnmatched(h Handler) { r.rest = h }

// ErrNoRoute is the error of a path where nothing is.
func ErrNoRoute() error { return echo.ErrNotFound }

func exchangeOf(c echo.Context) *Exchange { return c.Response().Writer.(*Exchange) }

// Handle adds a route. Parameters of the path begin with a colon.
func (r *Router) Handle(method, path string, h Handler) {
	rt := r.metrics.route(method, path)
	r.echo.Add(method, path, func(c echo.Context) error {
		x := exchangeOf(c)
		x.route, x.params = rt, c
		if err := h(x); err != nil {
			x.fail(err)
		}
		return nil
	})
}

// HandleGet adds a route for GET and HEAD; net/http drops the body of a reply to
// HEAD.
func (r *Router) HandleGet(path string, h Handler) {
	r.Handle(http.MethodGet, path, h)
	r.Handle(http.MethodHead, path, h)
}

// Unexposed has the problem of a method say why the path has no route for it, though it has others: a key of the
// configuration.
func (r *Router) Unexposed(method, path, why string) { r.unexposed[method+" "+path] = why }

// HandlePage adds a route for people, which is not part of the API: Routes leaves it out.
func (r *Router) HandlePage(method, path string, h Handler) {
	r.pages[path] = true
	r.Handle(method, path, h)
}

// HandleGetPage is HandlePage for GET and HEAD.
func (r *Router) HandleGetPage(path string, h Handler) {
	r.HandlePage(http.MethodGet, path, h)
	r.HandlePage(http.MethodHead, path, h)
}

// Routes returns all routes of the API, sorted, in the form "GET /books/{uuid}".
func (r *Router) Routes() []string {
	return r.routes(func(path string) bool { return !r.pages[path] })
}

// AllRoutes is Routes with those for people.
func (r *Router) AllRoutes() []string { return r.routes(func(string) bool { return true }) }

func (r *Router) routes(of func(path string) bool) []string {
	var all []string
	for _, route := range r.echo.Routes() {
		if route.Method == echo.RouteNotFound || !of(route.Path) {
			continue
		}
		segments := strings.Split(route.Path, "/")
		for i, segment := range segments {
			if name, ok := strings.CutPrefix(segment, ":"); ok {
				segments[i] = "{" + name + "}"
			}
		}
		all = append(all, route.Method+" "+strings.Join(segments, "/"))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ServeHTTP implements http.Handler.
func (r *Router) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	start := time.Now()
	req = r.within(req)
	r.metrics.inFlight.Inc()
	x := r.exchanges.Get().(*Exchange)
	*x = Exchange{
		ResponseWriter: w, Request: req, ID: requestID(req.Header), Address: r.forwarded.client(req),
		router: r, base: r.base, route: r.unmatchedRoute(req.Method), began: start, values: make([]string, 0, 8),
		failureLevel: slog.LevelError, body: req.Body,
	}
	x.SetHeader("X-Request-Id", x.ID)
	x.SetHeader("X-Content-Type-Options", "nosniff")
	r.dispatch(x)
	r.observe(req.Context(), x, time.Since(start))
	x.leave()
	r.metrics.inFlight.Dec()
	aborted := x.aborted
	*x = Exchange{}
	r.exchanges.Put(x)
	if aborted {
		// Cuts the connection, so that the client can't take the reply for complete.
		panic(http.ErrAbortHandler)
	}
}

// dispatch calls the filters and then the handler of the route. A panic fails
// only this request.
func (r *Router) dispatch(x *Exchange) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			x.aborted, x.err = true, http.ErrAbortHandler
		default:
			x.fail(errs.Panicked(p))
		}
	}()
	for _, filter := range r.filters {
		if err := filter(x); err != nil {
			x.CloseConnection()
			x.fail(err)
			return
		}
		if x.Replied() {
			return
		}
	}
	r.echo.ServeHTTP(x, x.Request)
}

func (r *Router) unmatchedRoute(method string) *route {
	if rt := r.unmatched[method]; rt != nil {
		return rt
	}
	return r.unmatched[otherMethod]
}
