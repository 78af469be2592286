package login

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"

	"belfry/pkg/account"
	"belfry/pkg/api/kit"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// begin redirects the browser to a provider. While somebody is logged in, a page of
// another origin must not: a login would end their session, and linking would add the
// identity of whoever is logged in at the provider.
func (h *handler) begin(x *kit.Exchange, provider string) error {
	client, err := h.client(x)
	if err != nil {
		return h.redirectFailure(x, err, providerReason(err))
	}
	if client.Session != nil && !h.fromTrustedPage(x) {
		x.Log(slog.LevelInfo, "a login was refused: a page of another origin began it while a user was logged in")
		redirect(x, http.StatusFound, withQuery(h.failure, "reason", "origin"))
		return nil
	}
	flow, err := h.service.Providers.Begin(x.Context(), provider, true, client)
	if err != nil {
		return h.redirectFailure(x, err, providerReason(err))
	}
	h.cookies.setFlow(x, flow)
	redirect(x, http.StatusFound, flow.URL)
	return nil
}

// fromTrustedPage reports whether a navigation comes from a page of belfry's or of a
// trusted origin, or from the user alone. A page of a sibling domain is not trusted. A
// browser that sends no Sec-Fetch-Site, as over http, sends a Referer; a program sends
// neither.
func (h *handler) fromTrustedPage(x *kit.Exchange) bool {
	referer := x.Request.Referer()
	switch x.Request.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return true
	case "":
		return referer == "" || h.origins.TrustReferer(x)
	}
	u, err := url.Parse(referer)
	return err == nil && u.Host != "" && h.origins.Trust(u.Scheme+"://"+u.Host)
}

// providerReason is the reason of a failed login at a provider, besides those that redirectFailure knows: whether it may succeed in
// a minute.
func providerReason(err error) string {
	switch errs.KindOf(err) {
	case errs.Unavailable, errs.Canceled, errs.Conflict:
		return "provider"
	default:
		return "rejected"
	}
}

// callback is the redirect target of every provider.
func (h *handler) callback(x *kit.Exchange) error {
	query := x.Query()
	name := account.FlowName(query)
	secret := h.service.Providers.FlowSecret(x.Context(), query, h.cookies.flow(x, name))
	if secret != "" {
		h.cookies.removeFlow(x, name)
	}
	client, err := h.client(x)
	if err != nil {
		return h.redirectFailure(x, err, providerReason(err))
	}
	client = knownBrowser(client)
	var session account.IssuedSession
	var provider string
	err = h.write(x, func(ctx context.Context) (err error) {
		session, provider, err = h.service.Login.FinishProvider(ctx, query, secret, client)
		return err
	})
	switch {
	case h.repeated(x, err, true):
		return nil
	case h.toSecondFactor(x, err, http.StatusFound):
		return nil
	case session.Application != nil:
		return h.sendToApplication(x, session, err, http.StatusFound)
	case err != nil:
		return h.redirectFailure(x, err, providerReason(err))
	}
	if session.Token != "" {
		h.cookies.setSession(x, session)
	}
	h.cookies.setBrowser(x, client)
	redirect(x, http.StatusFound, withQuery(h.success, "validation", provider))
	return nil
}

// maxCallback is the most bytes of a callback that becomes a query: browsers and proxies refuse long URLs.
const maxCallback = 6 << 10

// callbackFields are the fields of a posted callback that are passed on.
var callbackFields = []string{"state", "code", "error", "iss", "user"}

// postedCallback is the callback of a provider that has the browser POST it (OAuth 2.0 Form Post Response Mode). Browsers send
// no cookie with a POST of another site, so it reads none, and does what a link to the callback would: it sends the browser there, which
// then has the cookie of the flow.
func (h *handler) postedCallback(x *kit.Exchange) error {
	f, err := readForm(x)
	query := url.Values{}
	for _, name := range callbackFields {
		if text, _ := object.Text(f.Object[name]); text != "" {
			query.Set(name, text)
		}
	}
	target := account.CallbackPath + "?" + query.Encode()
	switch {
	case err == nil && !f.html:
		err = errs.New(errs.Unsupported, "a callback is sent as an HTML form")
	case err == nil && len(target) > maxCallback:
		err = errs.New(errs.TooLarge, "the callback has more than %d bytes", maxCallback)
	}
	if err != nil {
		return h.redirectFailure(x, err, providerReason(err))
	}
	redirect(x, http.StatusSeeOther, h.service.Base().At(target))
	return nil
}
