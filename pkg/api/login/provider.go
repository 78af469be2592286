package login

import (
	"context"
	"net/http"
	"net/url"

	"belfry/pkg/api/kit"
	"belfry/pkg/auth"
)

// begin redirects the browser to a provider.
func (h *handler) begin(x *kit.Exchange, provider string) error {
	client, err := h.client(x)
	if err != nil {
		return h.redirectFailure(x, err, "provider")
	}
	flow, err := h.service.BeginOAuth(x.Context(), provider, h.mayLink(x), client)
	if err != nil {
		return h.redirectFailure(x, err, "provider")
	}
	h.cookies.setFlow(x, flow)
	redirect(x, http.StatusFound, flow.URL)
	return nil
}

// mayLink reports whether a login flow may link an ident to the account that is logged
// in. A page of another origin must not start that, nor one of a sibling domain.
// A browser that sends no Sec-Fetch-Site, as over http, sends a Referer; a
// program sends neither.
func (h *handler) mayLink(x *kit.Exchange) bool {
	referer := x.Request.Referer()
	switch x.Request.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return true
	case "":
		if referer == "" {
			return true
		}
	}
	u, err := url.Parse(referer)
	return err == nil && u.Host != "" && h.origins.Trust(u.Scheme+"://"+u.Host)
}

// callback is the redirect target of every provider.
func (h *handler) callback(x *kit.Exchange) error {
	query := x.Request.URL.Query()
	name := auth.FlowName(query)
	secret := h.cookies.flow(x, name)
	if secret != "" {
		h.cookies.removeFlow(x, name)
	}
	client, err := h.client(x)
	if err != nil {
		return h.redirectFailure(x, err, "provider")
	}
	var session auth.IssuedSession
	var provider string
	err = h.write(x, func(ctx context.Context) (err error) {
		session, provider, err = h.service.FinishOAuth(ctx, query, secret, client)
		return err
	})
	if err != nil {
		return h.redirectFailure(x, err, "provider")
	}
	if session.Token != "" {
		h.cookies.setSession(x, session)
	}
	redirect(x, http.StatusFound, withQuery(h.success, "validation", provider))
	return nil
}
