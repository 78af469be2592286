package kit

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strings"
	"unicode/utf8"

	"belfry/pkg/event"
)

// Limits in bytes.
const (
	maxRequestID = 128
	maxUserAgent = 256
)

// requestID returns the request's id: that of X-Request-Id when it is valid, else
// a new one.
func requestID(h http.Header) string {
	if given := h["X-Request-Id"]; len(given) > 0 && validRequestID(given[0]) {
		return given[0]
	}
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails
	var text [32]byte
	hex.Encode(text[:], raw[:])
	return string(text[:])
}

func validRequestID(id string) bool {
	if id == "" || len(id) > maxRequestID {
		return false
	}
	for i := range len(id) {
		c := id[i]
		if !isAlphanumeric(c) && strings.IndexByte("-._~:/+=@", c) < 0 {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// UserAgent returns the User-Agent of the request, bounded.
func (x *Exchange) UserAgent() string { return Truncate(x.Request.UserAgent(), maxUserAgent) }

// EventCtx returns the description of the request for the events that it causes.
func (x *Exchange) EventCtx() event.Ctx {
	return event.Ctx{
		Request:   x.ID,
		Address:   x.Address,
		UserAgent: x.UserAgent(),
		Trace:     traceParent(x),
	}
}

// Truncate returns the beginning of s as valid UTF-8 of at most limit bytes.
func Truncate(s string, limit int) string {
	if len(s) > limit {
		for limit > 0 && !utf8.RuneStart(s[limit]) {
			limit--
		}
		s = s[:limit]
	}
	return strings.ToValidUTF8(s, "")
}
