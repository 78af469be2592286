package login

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"belfry/pkg/api/kit"
	"belfry/pkg/auth"
	"belfry/pkg/errs"
)

const (
	authorizePath = "/auth/authorize"

	// requestField is the field of a form that has the request of an application.
	requestField = "authorize"

	// Parameters of the page that are not the application's: the provider to log in with, and why the
	// last login failed.
	providerParameter = "provider"
	reasonParameter   = "reason"
)

// authorize begins a login for an application. A site is redirected to the provider that it
// names. A program is not: any program can open this URL and listen where the code is sent, and a provider
// may know the user without asking, so belfry's own page asks first (RFC 8252, section 8.6).
func (h *handler) authorize(x *kit.Exchange) error {
	query, err := url.ParseQuery(x.Request.URL.RawQuery)
	if err != nil {
		return errs.New(errs.Invalid, "the query is not properly encoded")
	}
	app, err := h.service.ApplicationOf(query)
	if app == nil {
		return err
	}
	if err != nil {
		return h.sendToApplication(x, auth.IssuedSession{Application: app}, err, http.StatusFound)
	}
	client, err := h.clientFor(x, app)
	if err != nil {
		return err
	}
	provider := query.Get(providerParameter)
	if provider == "" || provider == "email" || app.Native() && !h.fromOwnPage(x) {
		return h.askForLogin(x, app, query)
	}
	flow, err := h.service.BeginOAuth(x.Context(), provider, false, client)
	if err != nil {
		return h.sendToApplication(x, auth.IssuedSession{Application: app}, err, http.StatusFound)
	}
	h.cookies.setFlow(x, flow)
	redirect(x, http.StatusFound, flow.URL)
	return nil
}

// clientFor describes the client of a login for an application, which concerns no session of the browser.
func (h *handler) clientFor(x *kit.Exchange, app *auth.Application) (auth.Client, error) {
	client, err := h.client(x)
	client.Session, client.Application = nil, app
	return client, err
}

// fromOwnPage reports whether a navigation comes from a page of belfry's own origin: not from
// another one, and not from a program that opened the URL.
func (h *handler) fromOwnPage(x *kit.Exchange) bool {
	if site := x.Request.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	return strings.HasPrefix(x.Request.Referer(), h.service.BaseURL()+"/")
}

// enterForApplication logs in, or registers, with a form of the page that asks for a login.
func (h *handler) enterForApplication(x *kit.Exchange, f form, request string) error {
	query, err := url.ParseQuery(request)
	if err != nil {
		return errs.New(errs.Invalid, "the field %s is not properly encoded", requestField)
	}
	app, err := h.service.ApplicationOf(query)
	if app == nil {
		return err
	}
	var session auth.IssuedSession
	if err == nil {
		session, err = h.issueCode(x, f, app)
	}
	switch reason := formReasonOf(err); {
	case x.Replied():
		return nil
	case err != nil && reason != "":
		x.Log(slog.LevelInfo, "a login for an application failed", slog.String("reason", reason), slog.String("error", err.Error()))
		query.Set(reasonParameter, reason)
		redirect(x, http.StatusSeeOther, authorizePath+"?"+query.Encode())
		return nil
	}
	session.Application = app
	return h.sendToApplication(x, session, err, http.StatusSeeOther)
}

func (h *handler) issueCode(x *kit.Exchange, f form, app *auth.Application) (session auth.IssuedSession, err error) {
	register, err := f.takeBool("register")
	if err != nil {
		return session, err
	}
	c, err := credentials(f)
	if err != nil {
		return session, err
	}
	client, err := h.clientFor(x, app)
	if err != nil {
		return session, err
	}
	mailed := false
	err = h.write(x, func(ctx context.Context) (err error) {
		if register {
			session, mailed, err = h.service.Register(ctx, c, client)
		} else {
			session, err = h.service.Login(ctx, c, client)
		}
		return err
	})
	if err == nil && mailed {
		redirect(x, http.StatusSeeOther, withQuery(h.register, "mail", "sent"))
	}
	return session, err
}

// formReasonOf is the reason why a login failed that the user can mend on the page; "" for
// others, which are reported to the application.
func formReasonOf(err error) string {
	var protocol *auth.ProtocolError
	if err == nil || errors.As(err, &protocol) || errors.Is(err, auth.ErrDisabled) {
		return ""
	}
	switch errs.KindOf(err) {
	case errs.NotFound, errs.Denied, errs.Exists:
		return "denied"
	case errs.Limited:
		return "limited"
	case errs.Invalid, errs.TooLarge:
		return "invalid"
	}
	return ""
}

// sendToApplication redirects the browser to an application, with the code, or with what went wrong
// (RFC 6749, section 4.1.2). The error itself is logged.
func (h *handler) sendToApplication(x *kit.Exchange, s auth.IssuedSession, err error, status int) error {
	parameters := url.Values{"code": {s.Code}}
	if err != nil || s.Code == "" {
		code, description := protocolErrorOf(err)
		parameters = url.Values{"error": {code}, "error_description": {description}}
		x.Log(slog.LevelInfo, "a login for an application failed", slog.String("reason", code), slog.String("error", errText(err)))
	}
	redirect(x, status, s.Application.Location(parameters))
	return nil
}

func errText(err error) string {
	if err == nil {
		return "no code was issued"
	}
	return err.Error()
}

// protocolErrorOf translates the error of a login. The description is made of fixed texts: it leaves
// for another site.
func protocolErrorOf(err error) (code, description string) {
	var protocol *auth.ProtocolError
	switch {
	case errors.As(err, &protocol):
		return protocol.Code, protocol.Description
	case errors.Is(err, auth.ErrDisabled):
		return "access_denied", "this account is disabled"
	}
	switch errs.KindOf(err) {
	case errs.Denied, errs.Unauthenticated, errs.Mismatch, errs.Exists:
		return "access_denied", "nobody was logged in"
	case errs.NotFound:
		return auth.InvalidRequest, "the provider is not configured"
	case errs.Limited, errs.Unavailable, errs.Canceled:
		return "temporarily_unavailable", "the login is not possible at the moment: try again later"
	}
	return "server_error", "the login failed: the log of the server says why"
}

//go:embed authorize.html
var pages embed.FS

// loginPage is what the page that asks for a login shows.
type loginPage struct {
	Host        string // of belfry
	Application string // the configured redirect
	Native      bool
	Email       bool
	Request     string // the application's request as a query
	Providers   []providerLink
	Problem     string
}

type providerLink struct{ Name, URL string }

// problems says why the last login failed; other values of the parameter show nothing.
func problemText(reason string) string {
	switch reason {
	case "denied":
		return "The address or the password is wrong."
	case "limited":
		return "There were too many attempts. Try again later."
	case "invalid":
		return "Enter an address and a password."
	}
	return ""
}

// askForLogin shows the page that asks whether, and how, to log in for an application.
func (h *handler) askForLogin(x *kit.Exchange, app *auth.Application, query url.Values) error {
	page := loginPage{Host: hostOf(h.service.BaseURL()), Application: app.Name, Native: app.Native(), Email: h.service.EmailEnabled(), Problem: problemText(query.Get(reasonParameter))}
	query.Del(providerParameter)
	query.Del(reasonParameter)
	page.Request = query.Encode()
	for _, name := range h.service.ProviderNames() {
		page.Providers = append(page.Providers, providerLink{name, authorizePath + "?" + page.Request + "&" + providerParameter + "=" + url.QueryEscape(name)})
	}
	t, err := template.ParseFS(pages, "authorize.html")
	if err != nil {
		return err
	}
	var body bytes.Buffer
	if err := t.Execute(&body, page); err != nil {
		return err
	}
	// Browsers hold redirects after a form to form-action as well.
	x.SetHeader("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src data:; form-action 'self' "+actionSource(app)+"; frame-ancestors 'none'; base-uri 'none'")
	x.SetHeader("X-Frame-Options", "DENY")
	x.SetHeader("Referrer-Policy", "same-origin")
	x.SetHeader("Cache-Control", kit.NoStore)
	x.Send(http.StatusOK, "text/html; charset=utf-8", body.Bytes())
	return nil
}

// actionSource returns where the form may lead as a source of a content security policy. It has no
// form for an IPv6 address, and takes ports one by one, so for programs it is the scheme.
func actionSource(app *auth.Application) string {
	if app.Native() {
		scheme, _, _ := strings.Cut(app.Redirect, ":")
		return scheme + ":"
	}
	return "https://" + hostOf(app.Redirect)
}

// hostOf returns the host of a URL, with its port.
func hostOf(target string) string {
	_, rest, _ := strings.Cut(target, "://")
	host, _, _ := strings.Cut(rest, "/")
	return host
}
