package api

import (
	"context"
	"net/http"
	"strings"

	"belfry/pkg/auth"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// cookies name belfry's cookies. Over https their names begin with __Host-,
// with which browsers see to it that no other host and no other path set them.
type cookies struct {
	prefix string
	secure bool
}

const sessionCookie = "belfry"

func cookiesFor(baseURL string) cookies {
	if strings.HasPrefix(baseURL, "https:") {
		return cookies{prefix: "__Host-", secure: true}
	}
	return cookies{}
}

// put sets a cookie for an age in seconds; a negative one removes it.
func (c cookies) put(x *exchange, name, value string, age int) {
	http.SetCookie(x, &http.Cookie{ //nolint:gosec // Secure wherever baseURL is https; over http no browser would send it
		Name: c.prefix + name, Value: value, Path: "/", MaxAge: age,
		HttpOnly: true, Secure: c.secure, SameSite: http.SameSiteLaxMode,
	})
}

// keep hands a session's token over. Its age is the longest there is: the
// server knows when a session ends, and it is longer the more it is used.
func (c cookies) keep(x *exchange, in auth.IssuedSession) {
	c.put(x, sessionCookie, in.Token, int(auth.SessionMaxAge.Seconds()))
}

func (c cookies) drop(x *exchange) { c.put(x, sessionCookie, "", -1) }

func (c cookies) keepFlow(x *exchange, f auth.Flow) {
	c.put(x, sessionCookie+"-"+f.Name, f.Secret, int(auth.FlowTTL.Seconds()))
}

func (c cookies) dropFlow(x *exchange, name string) { c.put(x, sessionCookie+"-"+name, "", -1) }

func (c cookies) flow(x *exchange, name string) string {
	if name == "" {
		return ""
	}
	return c.value(x.req, sessionCookie+"-"+name)
}

func (c cookies) value(req *http.Request, name string) string {
	cookie, err := req.Cookie(c.prefix + name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// bearer is the token of an Authorization header.
func bearer(req *http.Request) (token string, ok bool) {
	scheme, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}

// session returns the session that a request carries, nil for none. It is
// looked up once, and at the first need. A program that shows a token which is
// not good is told so: it must not go on as nobody. A browser sends its cookie
// whether it is good or not.
func (s *Server) session(x *exchange) (*auth.Session, error) {
	if s.authenticator == nil || x.identified {
		return x.session, nil
	}
	token, ok := bearer(x.req)
	if !ok {
		if len(x.req.Header["Cookie"]) == 0 {
			return nil, nil
		}
		token = s.authenticator.cookies.value(x.req, sessionCookie)
	}
	session, err := s.authenticator.Service.Authenticate(store.WithCall(x.req.Context(), store.Call{Ctx: x.eventCtx()}), token)
	if err == nil && session == nil && ok {
		err = errs.New(errs.Unauthenticated, "the token in Authorization is not good, or not any more: log in again")
	}
	if err == nil {
		x.session, x.identified = session, true
	}
	return session, err
}

// context is that of a request which writes no object itself.
func (s *Server) context(x *exchange) context.Context {
	return store.WithCall(x.req.Context(), store.Call{Ctx: x.eventCtx()})
}
