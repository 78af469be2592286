package login

import (
	"net/http"
	"net/textproto"
	"strings"

	"belfry/pkg/api/kit"
	"belfry/pkg/auth"
	"belfry/pkg/errs"
)

// Sessions finds the session of a request by its bearer token or its cookie.
type Sessions struct {
	service *auth.Service
	cookies cookies
}

var _ kit.Authenticator = (*Sessions)(nil)

// NewSessions returns the Sessions of a service.
func NewSessions(service *auth.Service) *Sessions {
	return &Sessions{service, cookiesFor(service.BaseURL())}
}

// Authenticate implements kit.Authenticator. A bearer token that is not valid is an
// error, since a program must not continue as an anonymous client unawares. A
// cookie that is not valid is ignored: browsers send it in any case.
func (s *Sessions) Authenticate(x *kit.Exchange) (*auth.Session, error) {
	token, ok := x.BearerToken()
	if !ok {
		if len(x.Request.Header["Cookie"]) == 0 {
			return nil, nil
		}
		token = s.cookies.value(x.Request, sessionCookie)
	}
	session, err := s.service.Authenticate(x.Context(), token)
	switch {
	case err != nil:
		return nil, err
	case session == nil && ok:
		return nil, errs.Wrap(auth.ErrInvalidToken, errs.Unauthenticated, "the token in Authorization is not valid, or has expired: log in again")
	case session == nil || session.Key != nil && !ok:
		return nil, nil // an API key is no cookie: browsers would send it for pages of others
	}
	if err := kit.RequireAllowed(x, session.Key, x.RuleBudget(), x.Request.Method, x.Request.URL.Path); err != nil {
		return nil, err
	}
	return session, nil
}

// Issue sets the cookie of a session that has just been issued.
func (s *Sessions) Issue(x *kit.Exchange, session auth.IssuedSession) {
	s.cookies.setSession(x, session)
}

// SetCookie sets a cookie with the attributes that the cookie of a session has, for an age in seconds; a negative one
// removes it.
func (s *Sessions) SetCookie(x *kit.Exchange, name, value string, age int) {
	s.cookies.set(x, name, value, age)
}

// Cookie returns the value of a cookie that SetCookie has set, "" for none.
func (s *Sessions) Cookie(x *kit.Exchange, name string) string {
	return s.cookies.value(x.Request, name)
}

// Forget removes the cookie of a session.
func (s *Sessions) Forget(x *kit.Exchange) { s.cookies.removeSession(x) }

// cookies sets belfry's cookies. Over https their names begin with __Host-: then
// browsers accept them from this host and for the path / alone.
type cookies struct {
	prefix string
	secure bool
}

const (
	sessionCookie = "belfry"
	deviceCookie  = sessionCookie + "-device" // outlives logouts
)

func cookiesFor(baseURL string) cookies {
	if strings.HasPrefix(baseURL, "https:") {
		return cookies{prefix: "__Host-", secure: true}
	}
	return cookies{}
}

// set sets a cookie for an age in seconds; a negative one removes it.
func (c cookies) set(x *kit.Exchange, name, value string, age int) {
	http.SetCookie(x, &http.Cookie{ //nolint:gosec // Secure wherever baseURL is https; over http no browser would send it
		Name: c.prefix + name, Value: value, Path: "/", MaxAge: age,
		HttpOnly: true, Secure: c.secure, SameSite: http.SameSiteLaxMode,
	})
}

// setSession sets the token of a session. The cookie lives as long as a session
// can at most: the server decides when it expires, and use extends it.
func (c cookies) setSession(x *kit.Exchange, s auth.IssuedSession) {
	if s.Token == "" {
		return // the session of the request stays
	}
	c.set(x, sessionCookie, s.Token, int(auth.SessionMaxAge.Seconds()))
	if c.value(x.Request, pendingCookie) != "" {
		c.set(x, pendingCookie, "", -1) // else a step-up would be taken for that of a login that was given up
	}
	c.setDevice(x, s)
}

// setDevice sets the cookie by which a device is known at its next login.
func (c cookies) setDevice(x *kit.Exchange, s auth.IssuedSession) {
	if s.Device != "" {
		c.set(x, deviceCookie, s.Device, int(auth.DeviceTTL.Seconds()))
	}
}

func (c cookies) removeSession(x *kit.Exchange) { c.set(x, sessionCookie, "", -1) }

func (c cookies) setFlow(x *kit.Exchange, f auth.Flow) {
	c.set(x, sessionCookie+"-"+f.Name, f.Secret, int(auth.FlowTTL.Seconds()))
}

func (c cookies) removeFlow(x *kit.Exchange, name string) { c.set(x, sessionCookie+"-"+name, "", -1) }

// flow returns the secret of a flow, "" for none.
func (c cookies) flow(x *kit.Exchange, name string) string {
	if name == "" {
		return ""
	}
	return c.value(x.Request, sessionCookie+"-"+name)
}

// names returns the names of the cookies of a request that begin with a prefix, without that of c.
func (c cookies) names(req *http.Request, prefix string) (all []string) {
	for _, line := range req.Header["Cookie"] {
		for pair := range strings.SplitSeq(line, ";") {
			name, _, _ := strings.Cut(textproto.TrimString(pair), "=")
			if name, own := strings.CutPrefix(name, c.prefix); own && strings.HasPrefix(name, prefix) {
				all = append(all, name)
			}
		}
	}
	return all
}

func (c cookies) value(req *http.Request, name string) string {
	for _, line := range req.Header["Cookie"] {
		for pair := range strings.SplitSeq(line, ";") {
			pair = textproto.TrimString(pair)
			if given, _, _ := strings.Cut(pair, "="); textproto.TrimString(given) != c.prefix+name {
				continue
			}
			if parsed, err := http.ParseCookie(pair); err == nil {
				return parsed[0].Value
			}
		}
	}
	return ""
}
