package httpkit

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"belfry/internal/baseurl"
	"belfry/internal/ratelimit"
	"belfry/pkg/account/sessions"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// Values of Cache-Control. A reader may store what it read and has to
// revalidate it with If-None-Match; the reply to a write is not stored.
const (
	Revalidate = "private, no-cache"
	NoStore    = "no-store"
)

// Exchange is one request and its reply: the http.ResponseWriter that handlers
// and echo see, and what the log and the metrics report afterwards. It is
// reused: nothing may keep it after its handler has returned.
type Exchange struct {
	http.ResponseWriter
	Request *http.Request
	ID      string // the request id
	Address string // network address of the client

	router    *Router
	base      baseurl.URL  // where clients reach the server
	params    echo.Context // nil until a route is found
	route     *route
	unexposed string // why the path has no route for the method; "" if it never has one
	status    int    // 0 until the reply has begun
	bytes     int64  // of the reply's body
	err       error  // why the request failed
	aborted   bool   // the reply is incomplete: the connection can't be reused
	stream    bool   // the reply is a stream, for which a long duration is normal

	failureLevel slog.Level // at which it is logged that the server failed

	session       *sessions.Session
	authenticated bool  // session is known, or it is known to be missing:
	refused       error // of the token of the request; nil: it is not refused
	replayed      bool  // the reply is that of an earlier request
	rules         *policy.Budget
	began         time.Time
	metered       [2]*ratelimit.Bucket // of bytes: of the address and of the user; nil: none
	values        []string

	body     io.ReadCloser // of the request, as it arrives
	received int64         // bytes of it that were read
	arrived  bool          // to its end
	long     bool          // more of it is left than is read away
}

// WriteHeader implements http.ResponseWriter.
func (x *Exchange) WriteHeader(status int) {
	if x.status == 0 && status >= http.StatusOK {
		x.status = status
		x.place()
		x.settle()
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (x *Exchange) Write(data []byte) (int, error) {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	n, err := x.ResponseWriter.Write(data)
	x.bytes += int64(n)
	return n, err
}

// ReadFrom implements io.ReaderFrom, so that the operating system can send a
// file without copying it through the process.
func (x *Exchange) ReadFrom(r io.Reader) (int64, error) {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	n, err := io.Copy(x.ResponseWriter, r)
	x.bytes += n
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (x *Exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// Replied reports whether the reply has begun.
func (x *Exchange) Replied() bool { return x.status != 0 }

// varyByCaller says in the reply that it depends on the caller.
func (x *Exchange) varyByCaller() {
	const caller = "Authorization, Cookie"
	switch vary := x.Header()["Vary"]; {
	case vary == nil:
		x.SetHeader("Vary", caller)
	case !slices.Contains(vary, caller):
		x.Header()["Vary"] = append(slices.Clip(vary), caller)
	}
}

// SetHeader sets a header of the reply. The name must be in canonical form. The
// values of one reply share one array, which saves the allocation that
// http.Header.Set makes for each.
func (x *Exchange) SetHeader(name, value string) {
	x.values = append(x.values, value)
	n := len(x.values)
	x.Header()[name] = x.values[n-1 : n : n]
}

// Send writes a complete reply.
func (x *Exchange) Send(status int, contentType string, body []byte) {
	x.SetHeader("Content-Type", contentType)
	x.SetHeader("Content-Length", strconv.Itoa(len(body)))
	x.WriteHeader(status)
	// A write fails only when the client has disconnected.
	_, _ = x.Write(body)
}

// SendObject replies with an object and its entity tag.
func (x *Exchange) SendObject(status int, stored store.Stored) {
	x.SetHeader("Etag", ETag(stored))
	x.Send(status, JSON, stored.Body)
}

// Replayed is the header of a reply that is that of an earlier request with the same Idempotency-Key.
const Replayed = "Idempotency-Replayed"

// MarkReplayed marks the reply as that of an earlier request. The consequences of a write that this request did
// not make can't be waited for.
func (x *Exchange) MarkReplayed() { x.replayed = true }

// SendJSON replies with a value that must not be cached.
func (x *Exchange) SendJSON(v any) error { return x.SendValue(http.StatusOK, v) }

// SendValue replies with a status and a value that must not be cached.
func (x *Exchange) SendValue(status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	x.SetHeader("Cache-Control", NoStore)
	x.Send(status, JSON, body)
	return nil
}

// Redirect redirects a browser. The target does not receive the URL of this request (Referer), which may contain a
// token.
func (x *Exchange) Redirect(target string) {
	status := http.StatusSeeOther
	if x.Request.Method == http.MethodGet {
		status = http.StatusFound
	}
	x.SetHeader("Location", target)
	x.SetHeader("Cache-Control", NoStore)
	x.SetHeader("Referrer-Policy", "no-referrer")
	x.WriteHeader(status)
}

// SendPage replies with a page for people that nothing may store or embed, and whose URL no page of another origin
// gets: it may have the token of a mail. policy is its Content-Security-Policy.
func (x *Exchange) SendPage(policy string, body []byte) {
	x.setPageHeaders(policy)
	x.Send(http.StatusOK, htmlType, body)
}

const htmlType = "text/html; charset=utf-8"

// setPageHeaders sets the headers of a page for people. With no-referrer a browser would send the forms of the page
// with Origin: null. Over http, where it sends no Sec-Fetch-Site, that can't be distinguished from a page of another
// origin, and all forms would be refused.
func (x *Exchange) setPageHeaders(policy string) {
	x.SetHeader("Cache-Control", NoStore)
	x.SetHeader("Content-Security-Policy", policy)
	x.SetHeader("Referrer-Policy", "same-origin")
	x.SetHeader("X-Frame-Options", "DENY")
}

// SendStatus replies with a status and no body, and must not be cached.
func (x *Exchange) SendStatus(status int) error {
	x.SetHeader("Cache-Control", NoStore)
	x.WriteHeader(status)
	return nil
}

// CloseConnection closes the connection after the reply, for requests whose body
// is not read to its end.
func (x *Exchange) CloseConnection() { x.SetHeader("Connection", "close") }

// RecordError logs an error with the request and leaves the reply as it is, for
// errors that occur once the reply has begun.
func (x *Exchange) RecordError(err error) { x.err = err }

// LogFailureAt has the request logged at a level below error although its status says that the server failed, for
// states that are part of every start and stop.
func (x *Exchange) LogFailureAt(level slog.Level) { x.failureLevel = level }

// MarkStream marks the reply as a stream: its duration is no reason to log
// the request.
func (x *Exchange) MarkStream() { x.stream = true }

// ReadsKey is the key of the value in the context of a request whose method Reads is called by the function Reads.
type ReadsKey struct{}

// Reads says that the rest of a request changes no object with the configuration with which it began, and may last for
// hours: a reload need not wait for it before it builds indexes.
func Reads(ctx context.Context) {
	if use, ok := ctx.Value(ReadsKey{}).(interface{ Reads() }); ok {
		use.Reads()
	}
}
