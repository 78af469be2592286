package httpkit

import (
	"net/http"
	"net/url"
	"strings"

	"belfry/internal/baseurl"
)

// within returns a request whose path is that of a route. A proxy passes the path of the base URL on, or removes it:
// both are served, and everything after this, such as rules of API keys, sees one path.
func (r *Router) within(req *http.Request) *http.Request {
	if r.base.Path() == "" {
		return req
	}
	path, ok := r.base.Strip(req.URL.Path)
	raw, rawOK := r.base.Strip(req.URL.RawPath)
	if !ok || req.URL.RawPath != "" && !rawOK {
		return req
	}
	inner, address := new(http.Request), new(url.URL)
	*inner, *address = *req, *req.URL
	address.Path, address.RawPath = path, raw
	inner.URL = address
	return inner
}

// Base is where clients reach this server.
func (x *Exchange) Base() baseurl.URL { return x.base }

// LacksSlash reports whether a request is for the base URL without a slash at its end: relative links of a page there
// would be relative to the folder above it.
func (x *Exchange) LacksSlash() bool {
	path, _, _ := strings.Cut(x.Request.RequestURI, "?")
	return path != "" && path == x.base.Path()
}

// place has the headers of a reply that name a path of belfry's name it as clients reach it.
func (x *Exchange) place() {
	if x.base.Path() == "" {
		return
	}
	for _, name := range [...]string{"Location", "Hx-Redirect"} {
		if set := x.Header()[name]; len(set) == 1 {
			x.SetHeader(name, x.base.Below(set[0]))
		}
	}
}
