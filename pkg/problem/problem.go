// Package problem says what the kinds of errors are called at belfry's edges:
// the status of HTTP, which the bus uses as well, and the type and title of a
// problem document (RFC 9457).
package problem

import (
	"net/http"
	"strings"

	"belfry/pkg/errs"
)

// TypePrefix begins every problem type; docs/http.md says what each means.
const TypePrefix = "urn:belfry:problem:"

// Name is what a kind is called.
type Name struct {
	Type   string // without TypePrefix
	Title  string
	Status int
}

var names = map[errs.Kind]Name{
	errs.Invalid:         {"invalid", "The request is not valid", http.StatusBadRequest},
	errs.Unauthenticated: {"unauthenticated", "Log in first", http.StatusUnauthorized},
	errs.Denied:          {"denied", "Not allowed", http.StatusForbidden},
	errs.NotFound:        {"not-found", "Not found", http.StatusNotFound},
	errs.Exists:          {"exists", "Taken already", http.StatusConflict},
	errs.Conflict:        {"conflict", "In conflict with the present state", http.StatusConflict},
	errs.Mismatch:        {"mismatch", "A precondition does not hold", http.StatusPreconditionFailed},
	errs.TooLarge:        {"too-large", "Too large", http.StatusRequestEntityTooLarge},
	errs.Unsupported:     {"unsupported", "Unsupported media type", http.StatusUnsupportedMediaType},
	errs.Limited:         {"limited", "Too many requests", http.StatusTooManyRequests},
	errs.Unavailable:     {"unavailable", "Temporarily unavailable", http.StatusServiceUnavailable},
	errs.Canceled:        {"unavailable", "Temporarily unavailable", http.StatusServiceUnavailable},
	errs.Internal:        {"internal", "Internal error", http.StatusInternalServerError},
}

// Of is what a kind is called.
func Of(kind errs.Kind) Name {
	if n, ok := names[kind]; ok {
		return n
	}
	return names[errs.Internal]
}

// Kind is what a problem's type, with or without TypePrefix, was made of;
// Internal when it is none of ours.
func Kind(typ string) errs.Kind {
	typ = strings.TrimPrefix(typ, TypePrefix)
	if typ == names[errs.Unavailable].Type {
		return errs.Unavailable // never Canceled: that was theirs
	}
	for kind, n := range names {
		if n.Type == typ {
			return kind
		}
	}
	return errs.Internal
}
