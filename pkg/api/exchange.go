package api

import (
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"belfry/pkg/auth"
	"belfry/pkg/errs"
	"belfry/pkg/store/object"
)

// exchange is one request and its reply: the http.ResponseWriter that handlers
// and echo see, and what the log and the metrics say afterwards.
type exchange struct {
	http.ResponseWriter
	req     *http.Request
	params  echo.Context // nil until a route is found
	route   *route
	id      string
	address string // where the request comes from
	session *auth.Session
	status  int   // 0 until the reply has begun
	bytes   int64 // of the reply's body
	err     error // why the request failed
	aborted bool  // the reply broke off: the connection is of no further use
	lasting bool  // the reply is a stream: that it takes long tells nothing

	identified bool // session has been looked up
	values     []string
}

func exchangeOf(c echo.Context) *exchange { return c.Response().Writer.(*exchange) }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	s.metrics.inFlight.Inc()
	x := s.exchanges.Get().(*exchange)
	*x = exchange{ResponseWriter: w, req: r, id: requestID(r.Header), route: s.unmatchedRoute(r.Method)}
	x.address = s.clientAddress(r)
	x.values = make([]string, 0, 8)
	x.set("X-Request-Id", x.id)
	x.set("X-Content-Type-Options", "nosniff")
	s.dispatch(x)
	s.observe(r.Context(), x, time.Since(start))
	s.metrics.inFlight.Dec()
	aborted := x.aborted
	*x = exchange{}
	s.exchanges.Put(x)
	if aborted {
		// A reply that broke off must not look complete to the client.
		panic(http.ErrAbortHandler)
	}
}

// dispatch lets the router and a handler answer. A panic ends this request and
// nothing else.
func (s *Server) dispatch(x *exchange) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			x.aborted, x.err = true, http.ErrAbortHandler
		default:
			s.fail(x, errs.Panicked(p))
		}
	}()
	if s.shared(x) {
		return
	}
	if err := s.forged(x); err != nil {
		x.closeAfter()
		s.fail(x, err)
		return
	}
	if s.Closed != nil && !aboutHealth(x.req.URL.Path) {
		x.closeAfter()
		s.fail(x, s.Closed())
		return
	}
	s.echo.ServeHTTP(x, x.req)
}

// WriteHeader implements http.ResponseWriter.
func (x *exchange) WriteHeader(status int) {
	if x.status == 0 && status >= http.StatusOK {
		x.status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (x *exchange) Write(data []byte) (int, error) {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	n, err := x.ResponseWriter.Write(data)
	x.bytes += int64(n)
	return n, err
}

// ReadFrom implements io.ReaderFrom: the operating system sends a file by itself.
func (x *exchange) ReadFrom(r io.Reader) (int64, error) {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	n, err := io.Copy(x.ResponseWriter, r)
	x.bytes += n
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// set sets a header of the reply. The name must be in canonical form. The
// values of one reply share one array, which is what this saves over Set.
func (x *exchange) set(name, value string) {
	x.values = append(x.values, value)
	n := len(x.values)
	x.Header()[name] = x.values[n-1 : n : n]
}

// send writes a whole reply.
func (x *exchange) send(status int, contentType string, body []byte) {
	x.set("Content-Type", contentType)
	x.set("Content-Length", strconv.Itoa(len(body)))
	x.WriteHeader(status)
	// A failure means that the client is gone: there is nobody to tell.
	_, _ = x.Write(body)
}

// closeAfter ends the connection after the reply, for requests whose rest is
// not read.
func (x *exchange) closeAfter() { x.set("Connection", "close") }

const uuidParam = "uuid"

// uuid returns the object that the path names.
func (x *exchange) uuid() (string, error) {
	uuid := x.params.Param(uuidParam)
	for i := range len(uuid) {
		if uuid[i] == '/' {
			// The router's last parameter takes the rest of the path.
			return "", echo.ErrNotFound
		}
	}
	if x.req.URL.RawPath != "" {
		// The router matched the path as it was sent.
		decoded, err := url.PathUnescape(uuid)
		if err != nil {
			return "", errs.New(errs.Invalid, "the path is not properly percent-encoded")
		}
		uuid = decoded
	}
	return uuid, object.CheckUUID(uuid)
}
