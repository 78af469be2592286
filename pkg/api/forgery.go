package api

import (
	"net/http"
	"net/url"
	"strings"

	"belfry/pkg/errs"
)

// guardForgery prepares the refusal of requests that change state and that a
// page of another origin made a browser send: with the cookie that it has.
func (s *Server) guardForgery() {
	s.forgery = http.NewCrossOriginProtection()
	if s.Auth == nil {
		return
	}
	a := s.Auth
	for _, target := range []string{a.Service.BaseURL(), a.Success, a.Failure, a.Register, a.Recovery} {
		if origin := originOf(target); origin != "" {
			s.origins = append(s.origins, origin)
		}
	}
	s.origins = append(s.origins, a.TrustedOrigins...)
	for _, origin := range s.origins {
		if err := s.forgery.AddTrustedOrigin(origin); err != nil {
			panic("api: " + err.Error()) // the configuration was checked
		}
	}
}

// originOf is the origin of a URL, "" of a path.
func originOf(target string) string {
	u, err := url.Parse(target)
	if err != nil || u.Host == "" {
		return ""
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}

// trusts reports whether pages of an origin are belfry's own.
func (s *Server) trusts(origin string) bool {
	for _, o := range s.origins {
		if strings.EqualFold(o, origin) {
			return true
		}
	}
	return false
}

// forged refuses a request that a stranger's page has made. One that shows its
// token in a header is nobody's forgery: no page can make a browser do that.
func (s *Server) forged(x *exchange) error {
	if _, ok := bearer(x.req); ok {
		return nil
	}
	if err := s.forgery.Check(x.req); err != nil {
		return errs.New(errs.Denied, "the request comes from a page of another origin, which may not change anything here; trustedOrigins names those that may")
	}
	return nil
}
