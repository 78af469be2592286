package login

import (
	"cmp"
	"errors"
	"log/slog"
	"net/url"
	"strings"

	"belfry/pkg/account/flow/applications"
	"belfry/pkg/account/flow/logins"
	"belfry/pkg/account/once"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/op"
)

const (
	authorizePath = "/auth/authorize"
	tokenPath     = "/auth/token" //nolint:gosec // no credential

	// maxRequest is the most bytes of the request of an application. The page has it several times.
	maxRequest = 16 << 10

	// requestField is the field of a form that has the request of an application.
	requestField = "authorize"

	// Parameters of the page that are not the application's: the provider to log in with, why the
	// last login failed, and whether the form registers.
	providerParameter = "provider"
	reasonParameter   = "reason"
	registerParameter = "register"
)

// authorize begins a login for an application. A website is redirected to the provider that it names. A native program
// is not: any program can open this URL and listen at the redirect URL for the code, and a provider may log the user in
// without a question. So belfry's own page asks first (RFC 8252, section 8.6).
func (h applicationRoutes) authorize(x *httpkit.Exchange) error {
	if len(x.Request.URL.RawQuery) > maxRequest {
		return errs.New(errs.Invalid, "the request of the application has more than %d bytes", maxRequest)
	}
	query, err := httpkit.ParseQuery(x.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	app, err := h.service.Applications.Of(query)
	if app == nil {
		return err
	}
	if err != nil {
		x.Redirect(h.applicationURL(x, sessions.Issued{Application: app}, err))
		return nil
	}
	client, err := h.clientFor(x, app)
	if err != nil {
		return err
	}
	provider := query.Get(providerParameter)
	if provider == "" || provider == "email" || app.Native() && !h.fromOwnPage(x) {
		return h.askForLogin(x, app, query)
	}
	flow, err := h.service.Providers.Begin(x.Context(), provider, false, client)
	if err != nil {
		x.Redirect(h.applicationURL(x, sessions.Issued{Application: app}, err))
		return nil
	}
	h.cookies.setFlow(x, flow)
	x.Redirect(flow.URL)
	return nil
}

// clientFor describes the client of a login for an application, which concerns no session of the browser.
func (h applicationRoutes) clientFor(x *httpkit.Exchange, app *record.Application) (sessions.Client, error) {
	client, err := h.client(x)
	client.Session, client.Application = nil, app
	return client, err
}

// fromOwnPage reports whether a navigation comes from a page of belfry's own origin: not from
// another one, and not from a program that opened the URL.
func (h applicationRoutes) fromOwnPage(x *httpkit.Exchange) bool {
	if site := x.Request.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	return h.own.TrustReferer(x)
}

// enterForApplication logs in, or registers, with a form of the page that asks for a login. A registration may need a
// mail.
func (h applicationRoutes) enterForApplication(x *httpkit.Exchange, request, login string, register bool,
	issue func(*record.Application) (s sessions.Issued, mailed bool, err error)) (op.Outcome, error) {
	query, err := httpkit.ParseQuery(request)
	if err != nil {
		return op.Outcome{Problem: true}, errs.New(errs.Invalid, "the field %s is not properly encoded", requestField)
	}
	app, err := h.service.Applications.Of(query)
	if app == nil {
		return op.Outcome{Problem: true}, err
	}
	var session sessions.Issued
	mailed := false
	if err == nil {
		session, mailed, err = issue(app)
	}
	switch reason := formReasonOf(err); {
	case once.Repeated(err) != nil, logins.Pending(err) != nil:
		return op.Outcome{}, err
	case err == nil && mailed:
		return op.Outcome{To: withQuery(h.RegisterRedirect, "mail", "sent")}, nil
	case err != nil && reason != "":
		x.Log(slog.LevelInfo, "a login for an application failed", slog.String("reason", reason),
			slog.String("error", err.Error()))
		h.cookies.keepTyped(x, login)
		query.Set(reasonParameter, reason)
		if query.Del(registerParameter); register {
			query.Set(registerParameter, "true")
		}
		return op.Outcome{To: authorizePath + "?" + query.Encode()}, nil
	}
	session.Application = app
	return op.Outcome{To: h.applicationURL(x, session, err)}, nil
}

// formReasonOf returns the reason why a login failed if the user can correct it on the page; "" for others, which are
// reported to the application.
func formReasonOf(err error) string {
	var protocol *applications.ProtocolError
	if err == nil || errors.As(err, &protocol) || errors.Is(err, sessions.ErrDisabled) {
		return ""
	}
	switch errs.KindOf(err) {
	case errs.Exists, errs.Taken:
		return "taken"
	case errs.NotFound, errs.Denied:
		return "denied"
	case errs.Limited:
		return "limited"
	case errs.Invalid, errs.TooLarge:
		return cmp.Or(weakReason(err), "invalid")
	}
	return ""
}

// applicationURL is the URL of the application to which the browser is redirected, with the code, or with an error code
// (RFC 6749, section 4.1.2). The error itself is logged.
func (h *Handler) applicationURL(x *httpkit.Exchange, s sessions.Issued, err error) string {
	h.cookies.setDevice(x, s)
	parameters := url.Values{"code": {s.Code}}
	if err != nil || s.Code == "" {
		code, description := protocolErrorOf(err)
		parameters = url.Values{"error": {code}, "error_description": {description}}
		x.Log(slog.LevelInfo, "a login for an application failed", slog.String("reason", code),
			slog.String("error", errText(err)))
	}
	// RFC 9207: an application of several servers knows which one has replied.
	parameters.Set("iss", h.service.BaseURL())
	return s.Application.Location(parameters)
}

func errText(err error) string {
	if err == nil {
		return "no code was issued"
	}
	return err.Error()
}

// protocolErrorOf translates the error of a login. The description has only fixed texts, since another site receives
// it.
func protocolErrorOf(err error) (code, description string) {
	var protocol *applications.ProtocolError
	switch {
	case errors.As(err, &protocol):
		return protocol.Code, protocol.Description
	case errors.Is(err, sessions.ErrDisabled):
		return "access_denied", "this account is disabled"
	}
	switch errs.KindOf(err) {
	case errs.Denied, errs.Unauthenticated, errs.Mismatch, errs.Exists, errs.Taken:
		return "access_denied", "nobody was logged in"
	case errs.NotFound:
		return applications.InvalidRequest, "the provider is not configured"
	case errs.Limited, errs.Unavailable, errs.Canceled:
		return "temporarily_unavailable", "the login is not possible at the moment: try again later"
	}
	return "server_error", "the login failed: the log of the server has the reason"
}

// AuthorizePage is the data of the page that asks for a login.
type AuthorizePage struct {
	Application string // the configured redirect
	Native      bool
	Request     string // the application's request as a query
	Register    bool   // the form registers

	LoginURL, RegisterURL string            // the page with either form; "" without registration at once
	Providers             map[string]string // URLs by name
	Reason                string            // of the last failure; the page explains those that it knows
}

// askForLogin shows the page that asks whether, and how, to log in for an application.
func (h applicationRoutes) askForLogin(x *httpkit.Exchange, app *record.Application, query url.Values) error {
	page := AuthorizePage{Application: app.Name, Native: app.Native(), Register: query.Get(registerParameter) == "true",
		Providers: map[string]string{}, Reason: query.Get(reasonParameter)}
	for _, own := range []string{providerParameter, reasonParameter, registerParameter} {
		query.Del(own)
	}
	page.Request = query.Encode()
	page.LoginURL = x.Base().Below(authorizePath) + "?" + page.Request
	if h.service.EmailEnabled() && !h.service.ValidatesFirst() {
		page.RegisterURL = page.LoginURL + "&" + registerParameter + "=true"
	}
	page.Register = page.Register && page.RegisterURL != ""
	for _, name := range h.service.Providers.ProviderNames() {
		page.Providers[name] = page.LoginURL + "&" + providerParameter + "=" + url.QueryEscape(name)
	}
	body, err := h.authorizePage(x, page)
	if err != nil {
		return err
	}
	// Browsers apply form-action to redirects after a form as well.
	policy := "default-src 'none'; style-src 'self'; img-src 'self' data:; font-src 'self'; form-action 'self' " +
		actionSource(app) + "; frame-ancestors 'none'; base-uri 'none'; script-src 'self'"
	if h.service.Methods.Scripted() {
		policy += "; connect-src 'self'"
	}
	x.SendPage(policy, body)
	return nil
}

// actionSource returns the allowed redirect target of the form as a source of a Content-Security-Policy. Such a source
// can't be an IPv6 address or a range of ports, so for native programs it is the scheme.
func actionSource(app *record.Application) string {
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
