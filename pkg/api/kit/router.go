package kit

import (
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/errs"
	"belfry/pkg/logctx"
)

// RouterOptions are the options of a Router. All fields but MaxBody and Proxies
// are required.
type RouterOptions struct {
	Registry *prometheus.Registry
	Logger   *slog.Logger
	MaxBody  int64          // most bytes of a body that ReadObject and ReadForm read
	Proxies  []netip.Prefix // whose X-Forwarded-For is trusted
	Filters  []Filter       // called in order before the request is routed

	Development bool // problem documents say which rule denies
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
	proxies   []netip.Prefix
	filters   []Filter
	metrics   *metrics
	unmatched map[string]*route // requests that match no route, by method
	exchanges sync.Pool
	buffers   sync.Pool

	development bool
}

// NewRouter returns a Router without routes.
func NewRouter(o RouterOptions) *Router {
	r := &Router{
		echo: echo.New(), log: slog.New(logctx.NewHandler(o.Logger.Handler())), maxBody: o.MaxBody,
		proxies: slices.Clone(o.Proxies), filters: slices.Clone(o.Filters), metrics: newMetrics(o.Registry),
		development: o.Development,
	}
	r.unmatched = r.metrics.unmatched()
	r.exchanges.New = func() any { return new(Exchange) }
	r.buffers.New = func() any { return new([]byte) }
	r.echo.HTTPErrorHandler = func(err error, c echo.Context) { exchangeOf(c).fail(err) }
	return r
}

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

// Routes returns all routes, sorted, in the form "GET /books/{uuid}".
func (r *Router) Routes() []string {
	var all []string
	for _, route := range r.echo.Routes() {
		if route.Method == echo.RouteNotFound {
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
	r.metrics.inFlight.Inc()
	x := r.exchanges.Get().(*Exchange)
	*x = Exchange{
		ResponseWriter: w, Request: req, ID: requestID(req.Header), Address: clientAddress(req, r.proxies),
		router: r, route: r.unmatchedRoute(req.Method), began: start, values: make([]string, 0, 8),
	}
	x.SetHeader("X-Request-Id", x.ID)
	x.SetHeader("X-Content-Type-Options", "nosniff")
	r.dispatch(x)
	r.observe(req.Context(), x, time.Since(start))
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
// this request alone.
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
