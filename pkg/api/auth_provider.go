package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"

	"belfry/pkg/auth"
	"belfry/pkg/errs"
)

// begin sends the browser to a provider.
func (a *authenticator) begin(x *exchange, provider string) error {
	from, err := a.client(x)
	if err != nil {
		return a.refuse(x, err, "provider")
	}
	flow, err := a.Service.BeginOAuth(a.server.context(x), provider, a.links(x), from)
	if err != nil {
		return a.refuse(x, err, "provider")
	}
	a.cookies.keepFlow(x, flow)
	x.sendTo(http.StatusFound, flow.URL)
	return nil
}

// links reports whether a visit may link a way in to the account of who is
// logged in. A page of a stranger must not begin that, nor one of a sister
// domain. Where the browser does not say what page it comes from, as over http,
// a Referer does; a program has neither.
func (a *authenticator) links(x *exchange) bool {
	referer := x.req.Referer()
	switch x.req.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return true
	case "":
		if referer == "" {
			return true
		}
	}
	u, err := url.Parse(referer)
	return err == nil && u.Host != "" && a.server.trusts(u.Scheme+"://"+u.Host)
}

// callback is where every provider sends the browser back to.
func (a *authenticator) callback(x *exchange) error {
	query := x.req.URL.Query()
	name := auth.FlowName(query)
	secret := a.cookies.flow(x, name)
	if secret != "" {
		a.cookies.dropFlow(x, name)
	}
	from, err := a.client(x)
	if err != nil {
		return a.refuse(x, err, "provider")
	}
	var in auth.IssuedSession
	var provider string
	err = a.write(x, func(ctx context.Context) (err error) {
		in, provider, err = a.Service.FinishOAuth(ctx, query, secret, from)
		return err
	})
	if err != nil {
		return a.refuse(x, err, "provider")
	}
	if in.Token != "" {
		a.cookies.keep(x, in)
	}
	x.sendTo(http.StatusFound, withQuery(a.Success, "validation", provider))
	return nil
}

// refuse sends a browser to where failures are explained. What the page is told
// is a word, the one given unless the error's kind has its own; the log has the
// rest.
func (a *authenticator) refuse(x *exchange, err error, reason string) error {
	level := slog.LevelInfo
	switch errs.KindOf(err) {
	case errs.Denied, errs.Unauthenticated:
		reason = "denied"
	case errs.NotFound:
		reason = "unknown"
	case errs.Mismatch:
		reason = "state"
	case errs.Exists:
		reason = "taken"
	case errs.Limited:
		reason = "limited"
	case errs.Internal:
		level = slog.LevelError
	}
	a.server.Logger.LogAttrs(x.req.Context(), level, "a login failed",
		slog.String("request", x.id), slog.String("reason", reason), slog.String("error", err.Error()))
	status := http.StatusFound
	if x.req.Method != http.MethodGet {
		status = http.StatusSeeOther
	}
	x.sendTo(status, withQuery(a.Failure, "reason", reason))
	return nil
}

// sendTo sends a browser on.
func (x *exchange) sendTo(status int, target string) {
	x.set("Location", target)
	x.set("Cache-Control", noStore)
	x.set("Referrer-Policy", "no-referrer")
	x.WriteHeader(status)
}

// withQuery adds a parameter to a URL of the configuration.
func withQuery(target, name, value string) string {
	u, err := url.Parse(target)
	if err != nil {
		return target // the configuration was checked
	}
	query := u.Query()
	query.Set(name, value)
	u.RawQuery = query.Encode()
	return u.String()
}
