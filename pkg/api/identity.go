package api

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strings"
	"unicode/utf8"

	"belfry/pkg/event"
)

// Limits of what a request says about itself, in bytes.
const (
	maxRequestID = 128
	maxUserAgent = 256
)

// requestID returns the request's id: the one it came with when that is fit
// for logs and headers, else a new one.
func requestID(h http.Header) string {
	if given := h["X-Request-Id"]; len(given) > 0 && saneID(given[0]) {
		return given[0]
	}
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails
	var text [32]byte
	hex.Encode(text[:], raw[:])
	return string(text[:])
}

func saneID(id string) bool {
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

// eventCtx says in events where a write came from.
func (x *exchange) eventCtx() event.Ctx {
	return event.Ctx{
		Request:   x.id,
		Address:   x.address,
		UserAgent: cut(x.req.UserAgent(), maxUserAgent),
		Trace:     event.TraceParent(x.req.Header.Get("Traceparent")),
	}
}

// peer is the address at the other end of the connection.
func peer(remoteAddr string) string {
	if i := strings.LastIndexByte(remoteAddr, ':'); i > 0 {
		return strings.Trim(remoteAddr[:i], "[]")
	}
	return remoteAddr
}

// cut returns valid UTF-8 of at most limit bytes.
func cut(s string, limit int) string {
	if len(s) > limit {
		for limit > 0 && !utf8.RuneStart(s[limit]) {
			limit--
		}
		s = s[:limit]
	}
	return strings.ToValidUTF8(s, "")
}
