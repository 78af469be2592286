package api

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
)

// Document is a text of JSON that does not change while belfry runs.
type Document struct {
	Path string // of its route
	Body []byte
}

// document serves a document to whoever asks: it may be kept, and is asked for
// anew with If-None-Match.
func (s *Server) document(d Document) {
	sum := sha256.Sum256(d.Body)
	tag := hex.EncodeToString(sum[:16])
	s.handleGet(d.Path, func(x *exchange) error {
		match, err := parseTags("If-None-Match", x.req.Header["If-None-Match"])
		if err != nil {
			return err
		}
		x.set("Etag", `"`+tag+`"`)
		x.set("Cache-Control", "no-cache")
		if match.given && match.has(tag, true) {
			x.WriteHeader(http.StatusNotModified)
			return nil
		}
		x.send(http.StatusOK, jsonType, d.Body)
		return nil
	})
}

// Routes are all routes that there are, as "GET /books/{uuid}", in order.
func (s *Server) Routes() []string {
	var all []string
	for _, r := range s.echo.Routes() {
		if r.Method == echo.RouteNotFound {
			continue
		}
		segments := strings.Split(r.Path, "/")
		for i, segment := range segments {
			if name, ok := strings.CutPrefix(segment, ":"); ok {
				segments[i] = "{" + name + "}"
			}
		}
		all = append(all, r.Method+" "+strings.Join(segments, "/"))
	}
	slices.Sort(all)
	return slices.Compact(all)
}
