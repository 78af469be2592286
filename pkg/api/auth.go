package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"sort"
	"strings"

	"belfry/pkg/auth"
	"belfry/pkg/errs"
	"belfry/pkg/store/object"
)

// Auth mounts logging in, below /auth.
type Auth struct {
	Service *auth.Service

	// Where browsers are sent: URLs, or paths on this host. They come from the
	// configuration alone; no request chooses one.
	Success, Failure, Register, Recovery string

	// TrustedOrigins may change state besides the origins of the redirects and
	// of Service.BaseURL.
	TrustedOrigins []string
}

// maxAuthBody is the most bytes of a body below /auth: a registration's fields
// go into an event twice.
const maxAuthBody = 64 << 10

// authenticator is Auth at work.
type authenticator struct {
	Auth
	server  *Server
	cookies cookies
}

func (s *Server) mountAuth() {
	a := &authenticator{Auth: *s.Auth, server: s, cookies: cookiesFor(s.Auth.Service.BaseURL())}
	s.authenticator = a
	s.handleGet("/auth", a.providers)
	s.handleGet("/auth/me", a.me)
	s.handle(http.MethodDelete, "/auth", a.logout)
	s.handleGet("/auth/sessions", a.sessions)
	s.handle(http.MethodDelete, "/auth/sessions/:"+uuidParam, a.revoke)
	s.handle(http.MethodDelete, "/auth/idents/:"+uuidParam, a.unlink)
	if a.Service.EmailEnabled() {
		s.handle(http.MethodPost, "/auth/email", a.email)
		s.handle(http.MethodPut, "/auth/email", a.changePassword)
		s.handle(http.MethodPost, "/auth/email/validation", a.resend)
		s.handle(http.MethodGet, "/auth/email/callback", a.follow)
		s.handle(http.MethodPost, "/auth/email/recovery", a.forgot)
		s.handle(http.MethodPut, "/auth/email/recovery", a.recover)
	}
	for _, name := range a.Service.ProviderNames() {
		s.handle(http.MethodGet, "/auth/"+name, func(x *exchange) error { return a.begin(x, name) })
	}
	s.handle(http.MethodGet, auth.CallbackPath, a.callback)
}

// providers tells how one can log in.
func (a *authenticator) providers(x *exchange) error {
	type provider struct {
		Name string `json:"name"`
		URL  string `json:"url"`
	}
	list := []provider{}
	if a.Service.EmailEnabled() {
		list = append(list, provider{"email", "/auth/email"})
	}
	for _, name := range a.Service.ProviderNames() {
		list = append(list, provider{name, "/auth/" + name})
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return x.json(map[string]any{"providers": list})
}

// json replies with what nobody may keep.
func (x *exchange) json(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	x.set("Cache-Control", noStore)
	x.send(http.StatusOK, jsonType, body)
	return nil
}

// done replies that there is nothing to say.
func (x *exchange) done(status int) error {
	x.set("Cache-Control", noStore)
	x.WriteHeader(status)
	return nil
}

// me replies with the user who is logged in.
func (a *authenticator) me(x *exchange) error {
	session, err := a.need(x)
	if err != nil {
		return err
	}
	x.set("Cache-Control", noStore)
	x.object(http.StatusOK, a.Service.VisibleUser(session))
	return nil
}

// need returns the session of a request that needs one.
func (a *authenticator) need(x *exchange) (*auth.Session, error) {
	session, err := a.server.session(x)
	if err == nil && session == nil {
		err = errs.New(errs.Unauthenticated, "log in first, with a cookie or an Authorization: Bearer header")
	}
	return session, err
}

func (a *authenticator) logout(x *exchange) error {
	session, err := a.server.session(x)
	if err != nil {
		return err
	}
	if session != nil {
		if err := a.Service.Logout(a.server.context(x), session); err != nil {
			return err
		}
	}
	a.cookies.drop(x)
	return x.done(http.StatusNoContent)
}

func (a *authenticator) sessions(x *exchange) error {
	session, err := a.need(x)
	if err != nil {
		return err
	}
	list, err := a.Service.ListSessions(a.server.context(x), session)
	if err != nil {
		return err
	}
	return x.json(map[string]any{"sessions": list})
}

func (a *authenticator) revoke(x *exchange) error {
	session, err := a.need(x)
	if err != nil {
		return err
	}
	id, err := x.uuid()
	if err != nil {
		return err
	}
	if err := a.Service.RevokeSession(a.server.context(x), session, id); err != nil {
		return err
	}
	if id == session.ID {
		a.cookies.drop(x)
	}
	return x.done(http.StatusNoContent)
}

func (a *authenticator) unlink(x *exchange) error {
	session, err := a.need(x)
	if err != nil {
		return err
	}
	uuid, err := x.uuid()
	if err != nil {
		return err
	}
	if err := a.write(x, func(ctx context.Context) error { return a.Service.Unlink(ctx, session, uuid) }); err != nil {
		return err
	}
	return x.done(http.StatusNoContent)
}

// client says where a request comes from. To log in no good token is needed:
// one that is not counts as none for the rest of the request.
func (a *authenticator) client(x *exchange) (auth.Client, error) {
	session, err := a.server.session(x)
	if errors.Is(err, errs.Unauthenticated) {
		x.identified, err = true, nil
	}
	return auth.Client{Address: x.address, UserAgent: cut(x.req.UserAgent(), maxUserAgent), Session: session}, err
}

// authForm is a body below /auth: an object, or the fields of an HTML form, whose
// sender is a browser that wants to be sent on.
type authForm struct {
	object.Object
	html bool
}

const htmlFormType = "application/x-www-form-urlencoded"

func (a *authenticator) read(x *exchange) (authForm, error) {
	f := authForm{html: strings.HasPrefix(x.req.Header.Get("Content-Type"), htmlFormType)}
	if x.req.ContentLength > maxAuthBody {
		x.closeAfter()
		return f, tooLargeForm()
	}
	var err error
	if f.html {
		f.Object, err = a.server.readForm(x)
	} else {
		f.Object, err = a.server.readObject(x, jsonType, htmlFormType)
	}
	if err == nil && len(f.Encode()) > maxAuthBody {
		err = tooLargeForm()
	}
	return f, err
}

func tooLargeForm() error {
	return errs.New(errs.TooLarge, "at most %d bytes are taken here", maxAuthBody)
}

// readForm reads the fields of an HTML form; each is a text.
func (s *Server) readForm(x *exchange) (object.Object, error) {
	if err := checkMedia(x, []string{htmlFormType}); err != nil {
		return nil, err
	}
	body, err := s.readBody(x, nil)
	if err != nil {
		x.closeAfter()
		return nil, err
	}
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, errs.New(errs.Invalid, "the form is not properly encoded")
	}
	fields := map[string]string{}
	for name := range values {
		fields[name] = values.Get(name)
	}
	return object.Of(fields)
}

// texts takes fields out of a form that have to be texts; one that is absent is
// "".
func (f authForm) texts(names ...string) ([]string, error) {
	out := make([]string, len(names))
	for i, name := range names {
		value, given := f.Object[name]
		delete(f.Object, name)
		if !given || string(value) == "null" {
			continue
		}
		text, ok := object.Text(value)
		if !ok {
			return nil, &errs.Error{Kind: errs.Invalid, Message: "a field has the wrong type",
				Fields: []errs.Field{{Pointer: "/" + name, Message: "must be a string"}}}
		}
		out[i] = text
	}
	return out, nil
}

// flag takes a field out of a form that has to be true or false.
func (f authForm) flag(name string) (bool, error) {
	value := string(f.Object[name])
	delete(f.Object, name)
	switch value {
	case "true", `"true"`, `"on"`, `"1"`:
		return true, nil
	case "", "null", "false", `"false"`, `"off"`, `"0"`, `""`:
		return false, nil
	}
	return false, &errs.Error{Kind: errs.Invalid, Message: "a field has the wrong type",
		Fields: []errs.Field{{Pointer: "/" + name, Message: "must be true or false"}}}
}

// login takes the address out of a form.
func (f authForm) login() (string, error) {
	both, err := f.texts("login", "email")
	if err != nil {
		return "", err
	}
	if both[0] == "" {
		return strings.TrimSpace(both[1]), nil
	}
	return strings.TrimSpace(both[0]), nil
}
