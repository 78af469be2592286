// Package problem translates kinds of errors to HTTP and the bus: the status, and the
// type and title of a problem document (RFC 9457).
package problem

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"belfry/pkg/errs"
)

// TypePrefix begins every problem type; docs/reference/errors.md has a heading for each.
const TypePrefix = "urn:belfry:problem:"

// Name is the type, title and status of a kind.
type Name struct {
	Type   string // without TypePrefix
	Title  string
	Status int
}

var names = map[errs.Kind]Name{
	errs.Invalid:         {"invalid", "The request is not valid", http.StatusBadRequest},
	errs.Unauthenticated: {"unauthenticated", "Not logged in", http.StatusUnauthorized},
	errs.Denied:          {"denied", "Not allowed", http.StatusForbidden},
	errs.NotFound:        {"not-found", "Not found", http.StatusNotFound},
	errs.Exists:          {"exists", "It exists already", http.StatusConflict},
	errs.Taken:           {"taken", "Another object has a value that must be unique", http.StatusConflict},
	errs.Conflict:        {"conflict", "In conflict with the current state", http.StatusConflict},
	errs.Mismatch:        {"mismatch", "A precondition does not hold", http.StatusPreconditionFailed},
	errs.TooLarge:        {"too-large", "Too large", http.StatusRequestEntityTooLarge},
	errs.Unsupported:     {"unsupported", "Unsupported media type", http.StatusUnsupportedMediaType},
	errs.Limited:         {"limited", "Too many requests", http.StatusTooManyRequests},
	errs.Unavailable:     {"unavailable", "Temporarily unavailable", http.StatusServiceUnavailable},
	errs.Canceled:        {"unavailable", "Temporarily unavailable", http.StatusServiceUnavailable},
	errs.Internal:        {"internal", "Internal error", http.StatusInternalServerError},
}

// Of returns the Name of a kind, that of errs.Internal for an unknown one.
func Of(kind errs.Kind) Name {
	if n, ok := names[kind]; ok {
		return n
	}
	return names[errs.Internal]
}

// Kind returns the kind of a problem type, with or without TypePrefix; errs.Internal
// for an unknown one.
func Kind(typ string) errs.Kind {
	typ = strings.TrimPrefix(typ, TypePrefix)
	if typ == names[errs.Unavailable].Type {
		return errs.Unavailable // not Canceled, which concerns the context of the server
	}
	for kind, n := range names {
		if n.Type == typ {
			return kind
		}
	}
	return errs.Internal
}

// Encode encodes a problem document. It does not escape HTML characters, for people to
// read: the media type keeps clients from rendering it as HTML.
func Encode(document any) []byte {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)
	if err := e.Encode(document); err != nil {
		// Strings and numbers always have JSON text.
		panic(err)
	}
	return body.Bytes()
}

// RetryAfter returns the value of the Retry-After header for an error, in whole seconds,
// at least one.
func RetryAfter(err error) string {
	var e *errs.Error
	if errors.As(err, &e) {
		return Seconds(e.RetryAfter)
	}
	return "1"
}

// Seconds returns a duration in whole seconds, rounded up, at least one.
func Seconds(d time.Duration) string {
	return strconv.FormatInt(max(1, int64((d+time.Second-1)/time.Second)), 10)
}
