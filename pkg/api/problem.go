package api

import (
	"errors"
	"net/http"
	"os"

	"github.com/labstack/echo/v4"

	"belfry/pkg/errs"
	problems "belfry/pkg/problem"
)

const problemType = "application/problem+json"

// problem is an RFC 9457 problem document.
type problem struct {
	Type     string       `json:"type"`
	Title    string       `json:"title"`
	Status   int          `json:"status"`
	Detail   string       `json:"detail,omitempty"`
	Instance string       `json:"instance"` // the request's id
	Errors   []errs.Field `json:"errors,omitempty"`
}

// ofKind is the translation of error kinds to HTTP.
func ofKind(kind errs.Kind) problem {
	name := problems.Of(kind)
	p := problem{Type: name.Type, Title: name.Title, Status: name.Status}
	if p.Status == http.StatusInternalServerError {
		p.Detail = "The fault is on this side. The log has the details under the id in instance."
	}
	return p
}

// problemOf says what an error means to the client of an exchange.
func problemOf(x *exchange, err error) problem {
	var router *echo.HTTPError
	if errors.As(err, &router) && router.Code < http.StatusInternalServerError {
		return ofRouter(x, router.Code)
	}
	var beyond unsatisfiable
	if errors.As(err, &beyond) {
		return beyond.problem()
	}
	kind := errs.KindOf(err)
	if kind == errs.Canceled && (errors.Is(err, os.ErrDeadlineExceeded) || x.req.Context().Err() != nil) {
		return problem{
			Type: "timeout", Title: "The request took too long to arrive", Status: http.StatusRequestTimeout,
			Detail: "the request was given up before all of it was read and answered",
		}
	}
	p := ofKind(kind)
	var e *errs.Error
	if kind != errs.Internal && errors.As(err, &e) {
		p.Detail, p.Errors = e.Message, e.Fields
	}
	return p
}

// ofRouter is the translation of what echo itself refuses.
func ofRouter(x *exchange, status int) problem {
	switch status {
	case http.StatusNotFound:
		p := ofKind(errs.NotFound)
		p.Detail = "nothing is exposed at this path"
		return p
	case http.StatusMethodNotAllowed:
		return problem{
			Type: "method-not-allowed", Title: "Method not allowed", Status: status,
			Detail: "this path takes " + x.Header().Get(echo.HeaderAllow),
		}
	default:
		return problem{Type: "refused", Title: http.StatusText(status), Status: status}
	}
}

// fail replies with the problem that an error is. What must not be told is
// logged with the request.
func (s *Server) fail(x *exchange, err error) {
	x.err = err
	if x.status != 0 {
		x.aborted = true
		return
	}
	p := problemOf(x, err)
	p.Type, p.Instance = problems.TypePrefix+p.Type, x.id
	switch p.Status {
	case http.StatusUnauthorized:
		x.set("Www-Authenticate", "Bearer")
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		x.set("Retry-After", problems.RetryAfter(err))
	}
	x.set("Cache-Control", "no-store")
	x.send(p.Status, problemType, problems.Encode(p))
}
