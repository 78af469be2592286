package httpkit

import (
	"net/http"

	"github.com/rs/cors"
)

// preflightAge is how long a browser may cache the reply to a preflight request, in
// seconds. Browsers cap it at a day or less.
const preflightAge = 2 * 60 * 60

func newCORS(trust func(origin string) bool) *cors.Cors {
	return cors.New(cors.Options{
		AllowOriginFunc:  trust,
		AllowCredentials: true,
		AllowedMethods: []string{
			http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		},
		AllowedHeaders: []string{"*"}, // echoes the requested ones
		ExposedHeaders: []string{
			"Accept-Ranges", "Content-Disposition", "Content-Range", "ETag", Replayed, "Link", "Location", "Preference-Applied",
			"RateLimit", "RateLimit-Policy", "Repr-Digest", "Retry-After", "WWW-Authenticate", "X-Request-Id",
		},
		MaxAge: preflightAge,
	})
}

// AllowCORS is the Filter that lets pages of trusted origins read replies. It
// replies to preflight requests.
func (o *Origins) AllowCORS(x *Exchange) error {
	if o.cors != nil {
		o.cors.HandlerFunc(x, x.Request)
	}
	return nil
}
