package login

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"belfry/pkg/account"
	"belfry/pkg/account/method/providers"
	"belfry/pkg/account/notices"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
)

// Sessions finds the session of a request by its bearer token or its cookie.
type Sessions struct {
	service *account.Service
	cookies cookies
}

var _ httpkit.Authenticator = (*Sessions)(nil)

// NewSessions returns the Sessions of a service.
func NewSessions(service *account.Service) *Sessions {
	return &Sessions{service, cookiesFor(service)}
}

// Authenticate implements httpkit.Authenticator. An invalid bearer token is an error, so that a program never continues
// as an anonymous client by mistake. An invalid cookie is ignored, since browsers always send it. Browsers send several
// cookies with one name, if they were set for other paths or hosts: the first valid one counts.
func (s *Sessions) Authenticate(x *httpkit.Exchange) (*sessions.Session, error) {
	token, ok := x.BearerToken()
	tokens := []string{token}
	if !ok {
		if len(x.Request.Header["Cookie"]) == 0 {
			return nil, nil
		}
		tokens = s.cookies.values(x.Request, sessionCookie)
	}
	var session *sessions.Session
	var err error
	for i := 0; i < len(tokens) && err == nil && session == nil; i++ {
		session, err = s.service.Sessions.Authenticate(x.Context(), tokens[i])
		if session != nil && session.Key != nil && !ok {
			session = nil // an API key is not accepted as a cookie: browsers would send it for pages of other sites
		}
	}
	switch {
	case err != nil:
		return nil, err
	case session == nil && ok:
		return nil, errs.Wrap(sessions.ErrInvalidToken, errs.Unauthenticated,
			"the token in Authorization is not valid, or has expired: log in again")
	case session == nil:
		return nil, nil
	}
	if err := httpkit.RequireAllowed(x, session.Key, x.RuleBudget(), x.Request.Method, x.Request.URL.Path); err != nil {
		return nil, err
	}
	return session, nil
}

// Issue sets the cookie of a session that has just been issued.
func (s *Sessions) Issue(x *httpkit.Exchange, session sessions.Issued) {
	s.cookies.setSession(x, session)
}

// SetCookie sets a cookie with the attributes of a session's cookie, for an age in seconds; a negative age removes it.
func (s *Sessions) SetCookie(x *httpkit.Exchange, name, value string, age int) {
	s.cookies.set(x, name, value, age)
}

// Cookie returns the values of a cookie that SetCookie has set. Browsers send several: the first valid one counts.
func (s *Sessions) Cookie(x *httpkit.Exchange, name string) []string {
	return s.cookies.values(x.Request, name)
}

// LogOut ends a session, which may be nil, and removes its cookie. It also ends the sessions of further cookies:
// without the first cookie, the browser's next one would count.
func (s *Sessions) LogOut(x *httpkit.Exchange, session *sessions.Session) error {
	if session != nil {
		if err := s.service.Sessions.Logout(x.Context(), session); err != nil {
			return err
		}
	}
	if _, ok := x.BearerToken(); !ok {
		for _, token := range s.cookies.values(x.Request, sessionCookie) {
			other, err := s.service.Sessions.Authenticate(x.Context(), token)
			if err == nil && other != nil && other.Key == nil {
				err = s.service.Sessions.Logout(x.Context(), other)
			}
			if err != nil {
				return err
			}
		}
	}
	s.cookies.removeSession(x)
	return nil
}

// KnownBrowser returns a client with the cookie that identifies the browser of a repeated request, or a new value of
// it.
func (s *Sessions) KnownBrowser(x *httpkit.Exchange, client sessions.Client) sessions.Client {
	client.Browser = s.cookies.value(x.Request, browserCookie)
	return knownBrowser(client)
}

// SetBrowser sets the cookie that identifies the browser of a client, unless the browser has it.
func (s *Sessions) SetBrowser(x *httpkit.Exchange, client sessions.Client) {
	s.cookies.setBrowser(x, client)
}

// cookies sets belfry's cookies. Over https their names begin with __Host-, so browsers accept them only from this host
// and for the path /. Over http they are for the path of the base URL.
type cookies struct {
	prefix string
	secure bool
	path   string
	names  func() []string // of the cookie of sessions: the one that is set, and others that are read as well
}

// The names of cookies, with the default name of the sessions' cookie. A configured name replaces it in all of them.
const (
	sessionCookie = sessions.DefaultCookie
	deviceCookie  = sessionCookie + "-device" // outlives logouts
)

// maxTokens is how many session cookies of one request are tried.
const maxTokens = 4

func cookiesFor(service *account.Service) cookies {
	c := cookies{path: service.Base().CookiePath(), names: service.Sessions.CookieNames}
	if service.Base().Secure() {
		c.prefix, c.secure, c.path = "__Host-", true, "/"
	}
	return c
}

// named returns the name of a cookie for a name of the sessions' cookie.
func (c cookies) named(session, name string) string {
	return c.prefix + session + strings.TrimPrefix(name, sessionCookie)
}

// set sets a cookie for an age in seconds; a negative age removes it.
func (c cookies) set(x *httpkit.Exchange, name, value string, age int) {
	c.setNamed(x, c.named(c.names()[0], name), value, age)
}

// setNamed is set for the full name of a cookie.
func (c cookies) setNamed(x *httpkit.Exchange, name, value string, age int) {
	http.SetCookie(x, &http.Cookie{ //nolint:gosec // Secure wherever baseURL is https; over http no browser would send it
		Name: name, Value: value, Path: c.path, MaxAge: age,
		HttpOnly: true, Secure: c.secure, SameSite: http.SameSiteLaxMode,
	})
}

// setSession sets the token of a session. The cookie lives as long as a session
// can at most: the server decides when it expires, and use extends it.
func (c cookies) setSession(x *httpkit.Exchange, s sessions.Issued) {
	if s.Token == "" {
		return // the session of the request continues
	}
	c.set(x, sessionCookie, s.Token, int(sessions.SessionMaxAge.Seconds()))
	if c.value(x.Request, pendingCookie) != "" {
		c.set(x, pendingCookie, "", -1) // otherwise a step-up would be treated as part of an abandoned login
	}
	c.forgetTyped(x)
	c.setDevice(x, s)
}

// setDevice sets the cookie that identifies a device at its next login.
func (c cookies) setDevice(x *httpkit.Exchange, s sessions.Issued) {
	if s.Device != "" {
		c.set(x, deviceCookie, s.Device, int(notices.DeviceTTL.Seconds()))
	}
}

func (c cookies) removeSession(x *httpkit.Exchange) {
	c.set(x, sessionCookie, "", -1)
	c.forgetTyped(x)
}

func (c cookies) setFlow(x *httpkit.Exchange, f providers.Flow) {
	c.set(x, sessionCookie+"-"+f.Name, f.Secret, int(providers.FlowTTL.Seconds()))
}

func (c cookies) removeFlow(x *httpkit.Exchange, name string) {
	c.set(x, sessionCookie+"-"+name, "", -1)
}

// flow returns the secrets of a flow, of which one is valid.
func (c cookies) flow(x *httpkit.Exchange, name string) []string {
	if name == "" {
		return nil
	}
	return c.values(x.Request, sessionCookie+"-"+name)
}

// beginning returns the full names of the request's cookies that begin with a name, former names first.
func (c cookies) beginning(req *http.Request, prefix string) (all []string) {
	for _, session := range slices.Backward(c.names()) {
		wanted := c.named(session, prefix)
		for _, line := range req.Header["Cookie"] {
			for pair := range strings.SplitSeq(line, ";") {
				if name, _, _ := strings.Cut(textproto.TrimString(pair), "="); strings.HasPrefix(name, wanted) {
					all = append(all, name)
				}
			}
		}
	}
	return all
}

// value returns the first value of a cookie that is not empty, "" for none.
func (c cookies) value(req *http.Request, name string) string {
	if all := c.values(req, name); len(all) > 0 {
		return all[0]
	}
	return ""
}

// values returns the first values of a cookie that are not empty: those of its name in the order of the request, and
// then those of its former names.
func (c cookies) values(req *http.Request, name string) (all []string) {
	for _, session := range c.names() {
		wanted := c.named(session, name)
		for _, line := range req.Header["Cookie"] {
			for pair := range strings.SplitSeq(line, ";") {
				pair = textproto.TrimString(pair)
				if given, _, _ := strings.Cut(pair, "="); textproto.TrimString(given) != wanted {
					continue
				}
				if parsed, err := http.ParseCookie(pair); err == nil && parsed[0].Value != "" {
					if all = append(all, parsed[0].Value); len(all) == maxTokens {
						return all
					}
				}
			}
		}
	}
	return all
}
