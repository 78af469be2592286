package api

import (
	"net/http"
	"slices"

	"github.com/rs/cors"
)

// preflightAge is how long a browser may remember what it was told before a
// request, in seconds; none remembers longer than a day.
const preflightAge = 2 * 60 * 60

// shareReplies lets pages of trusted origins read replies. Those of belfry's own
// can without being told, so where no others are trusted there is nothing to do.
func (s *Server) shareReplies() {
	if s.Auth == nil {
		return
	}
	own := originOf(s.Auth.Service.BaseURL())
	if !slices.ContainsFunc(s.origins, func(origin string) bool { return origin != own }) {
		return
	}
	s.cors = cors.New(cors.Options{
		AllowOriginFunc:  s.trusts,
		AllowCredentials: true,
		AllowedMethods: []string{
			http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		},
		AllowedHeaders: []string{"*"}, // those that are asked for
		ExposedHeaders: []string{
			"Accept-Ranges", "Content-Disposition", "Content-Range", "ETag", "Link", "Location", "Preference-Applied",
			"Repr-Digest", "Retry-After", "WWW-Authenticate", "X-Request-Id",
		},
		MaxAge: preflightAge,
	})
}

// shared says in a reply whose pages may read it, and reports whether the
// request was a browser's question about one to come, which is answered then.
func (s *Server) shared(x *exchange) bool {
	if s.cors == nil {
		return false
	}
	s.cors.HandlerFunc(x, x.req)
	return x.status != 0
}
