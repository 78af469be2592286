package httpkit

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/rs/cors"

	"belfry/pkg/errs"
)

// Origins are the web origins whose pages may use this server with its cookies:
// the server's own and those of the configuration.
type Origins struct {
	trusted []string
	forgery *http.CrossOriginProtection
	open    string     // the path to which pages of any origin may POST; "" for none
	secure  bool       // clients use https
	cors    *cors.Cors // nil: there are no other origins than the server's own
}

// NewOrigins returns Origins that trust the origin of each URL besides that of the
// request; base is the server's own. URLs without a host, which are paths, are
// ignored. It panics for an origin that is not valid: the configuration has been
// validated before.
func NewOrigins(base string, urls ...string) *Origins {
	o := &Origins{forgery: http.NewCrossOriginProtection()}
	own := originOf(base)
	o.secure = strings.HasPrefix(own, "https:")
	for _, u := range append([]string{base}, urls...) {
		origin := originOf(u)
		if origin == "" {
			continue
		}
		if err := o.forgery.AddTrustedOrigin(origin); err != nil {
			panic("api: " + err.Error())
		}
		o.trusted = append(o.trusted, origin)
	}
	if slices.ContainsFunc(o.trusted, func(origin string) bool { return origin != own }) {
		o.cors = newCORS(o.Trust)
	}
	return o
}

// originOf returns the origin of a URL, "" for a path.
func originOf(target string) string {
	u, err := url.Parse(target)
	if err != nil || u.Host == "" {
		return ""
	}
	return strings.ToLower(u.Scheme + "://" + withoutDefaultPort(u))
}

// withoutDefaultPort returns the host of a URL as browsers send it in Origin.
func withoutDefaultPort(u *url.URL) string {
	if u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80" {
		return strings.TrimSuffix(u.Host, ":"+u.Port())
	}
	return u.Host
}

// Trust reports whether an origin is trusted.
func (o *Origins) Trust(origin string) bool {
	return slices.ContainsFunc(o.trusted, func(t string) bool { return strings.EqualFold(t, origin) })
}

// Open lets pages of any origin POST to a path, whose handler must do no more for it than for a link to it.
func (o *Origins) Open(path string) { o.open = path }

// RefuseForgery is the Filter against cross-site request forgery: it refuses a
// request that changes state and that a browser sent for a page of another origin.
// A request with a bearer token is not refused, since no page can make a browser
// add one.
func (o *Origins) RefuseForgery(x *Exchange) error {
	if _, ok := x.BearerToken(); ok {
		return nil
	}
	if o.open != "" && x.Request.Method == http.MethodPost && x.Request.URL.Path == o.open {
		return nil
	}
	if err := o.forgery.Check(x.Request); err != nil {
		return errs.New(errs.Denied, "the request comes from a page of another origin, which may not change anything "+
			"here; trustedOrigins names those that may. If it comes from a page of this server, the address that the "+
			"browser shows is not the one that belfry knows: set baseURL to it")
	}
	return nil
}

// TrustReferer reports whether a request of a browser that says nothing in Sec-Fetch-Site, as over http, comes from a
// page of the host that the request names, or of a trusted origin. Where clients use https, a page of that host over
// http is one that somebody on the way can have written.
func (o *Origins) TrustReferer(x *Exchange) bool {
	u, err := url.Parse(x.Request.Referer())
	if err != nil || u.Host == "" {
		return false
	}
	same := strings.EqualFold(u.Host, x.Request.Host) && (u.Scheme == "https" || !o.secure)
	return same || o.Trust(u.Scheme+"://"+u.Host)
}

// BearerToken returns the token of the Authorization header.
func (x *Exchange) BearerToken() (token string, ok bool) {
	given := x.Request.Header["Authorization"]
	if len(given) == 0 {
		return "", false
	}
	scheme, token, _ := strings.Cut(given[0], " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}

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
			"Accept-Ranges", "Content-Disposition", "Content-Range", "ETag", Replayed, "Link", "Location",
			"Preference-Applied",
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
