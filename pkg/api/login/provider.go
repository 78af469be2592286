package login

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"

	"belfry/internal/ordered"
	"belfry/pkg/account/method/providers"
	"belfry/pkg/account/sessions"
	"belfry/pkg/apimodel"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
	"belfry/pkg/op"
)

// begin redirects the browser to a provider. While a user is logged in, a page of another origin may not do this: a
// login would end the user's session, and linking would add the identity of the browser's user at the provider.
func (h byProvider) begin(x *httpkit.Exchange, provider string) error {
	client, err := h.client(x)
	if err != nil {
		return h.redirectFailure(x, err, providerReason(err))
	}
	if client.Session != nil && !h.fromTrustedPage(x) {
		x.Log(slog.LevelInfo, "a login was refused: a page of another origin began it while a user was logged in")
		x.Redirect(withQuery(h.FailureRedirect, "reason", "origin"))
		return nil
	}
	flow, err := h.service.Providers.Begin(x.Context(), provider, true, client)
	if err != nil {
		return h.redirectFailure(x, err, providerReason(err))
	}
	h.cookies.setFlow(x, flow)
	x.Redirect(flow.URL)
	return nil
}

// fromTrustedPage reports whether a navigation comes from a page of belfry's or of a trusted origin, or directly from
// the user. A page of a sibling domain is not trusted. A browser that sends no Sec-Fetch-Site, as over http, sends a
// Referer; a program sends neither.
func (h *Handler) fromTrustedPage(x *httpkit.Exchange) bool {
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

// providerReason is the reason of a failed login at a provider that redirectFailure does not know: it says whether a
// retry may succeed.
func providerReason(err error) string {
	switch errs.KindOf(err) {
	case errs.Unavailable, errs.Canceled, errs.Conflict:
		return "provider"
	default:
		return "rejected"
	}
}

// callback is the redirect target of every provider.
func (h byProvider) callback(x *httpkit.Exchange) error {
	query := x.Query()
	name := providers.FlowName(query)
	secret := h.service.Providers.FlowSecret(x.Context(), query, h.cookies.flow(x, name))
	if secret != "" {
		h.cookies.removeFlow(x, name)
	}
	client, err := h.client(x)
	if err != nil {
		return h.redirectFailure(x, err, providerReason(err))
	}
	client = knownBrowser(client)
	var session sessions.Issued
	var provider string
	err = h.write(x, func(ctx context.Context) (err error) {
		session, provider, err = h.service.Login.FinishProvider(ctx, query, secret, client)
		return err
	})
	switch {
	case h.repeated(x, err, true):
		return nil
	case h.toSecondFactor(x, err):
		return nil
	case session.Application != nil:
		x.Redirect(h.applicationURL(x, session, err))
		return nil
	case err != nil:
		return h.redirectFailure(x, err, providerReason(err))
	}
	if session.Token != "" {
		h.cookies.setSession(x, session)
	}
	h.cookies.setBrowser(x, client)
	x.Redirect(withQuery(h.SuccessRedirect, "validation", provider))
	return nil
}

// maxCallback is the most bytes of a callback that becomes a query: browsers and proxies refuse long URLs.
const maxCallback = 6 << 10

// callbackFields are the fields of a posted callback that are passed on.
var callbackFields = []string{"code", "state", "error", "iss", "user"}

// postedCallback is the callback of a provider that makes the browser POST it (OAuth 2.0 Form Post Response Mode).
// Browsers send no cookies with a POST from another site. So it redirects the browser to the callback by GET, with
// which the browser sends the cookie of the flow.
func (h byProvider) postedCallback(x *httpkit.Exchange) error {
	f, err := op.ReadInput(x)
	query := url.Values{}
	for _, name := range callbackFields {
		if text, _ := object.Text(f.Rest[name]); text != "" {
			query.Set(name, text)
		}
	}
	target := providers.CallbackPath + "?" + query.Encode()
	switch {
	case err == nil && !f.HTML:
		err = errs.New(errs.Unsupported, "the callback must be an HTML form: send application/x-www-form-urlencoded")
	case err == nil && len(target) > maxCallback:
		err = errs.New(errs.TooLarge, "the callback has more than %d bytes", maxCallback)
	}
	if err != nil {
		return h.redirectFailure(x, err, providerReason(err))
	}
	x.Redirect(h.service.Base().At(target))
	return nil
}

// addProvider adds the operation by which browsers are sent to a provider.
func (h byProvider) addProvider(set *op.Set, name string) {
	set.Add(op.Operation{
		Method: http.MethodGet, Path: "/auth/" + name, ID: "loginWith" + apimodel.Identifier(name),
		Summary:     "Log in through " + name,
		Description: "For browsers: redirects them to the provider, or to the page of failure.",
		Replies:     ordered.Of("302", op.Redirect("To the provider.", "Set-Cookie")),
		Navigation:  true, Run: func(x *httpkit.Exchange) error { return h.begin(x, name) },
	})
}

// addProviderToken adds the operation of providers' tokens.
func (h byProvider) addProviderToken(set *op.Set) {
	token := op.Object("", 1, "accessToken", op.Text(""),
		"expires", apimodel.Time("The time at which it expires; absent if the provider does not say."),
		"scope", op.Text("The scopes of the token, separated by spaces."))
	token.Set("required", []string{"accessToken", "scope"})
	set.Get(op.Operation{
		Path: "/auth/idents/{uuid}/token", ID: "getProviderToken", Summary: "Get an access token of a provider",
		Security:    op.Needed(),
		Description: "For one's own ident whose provider has `tokens: keep`. An expired token is refreshed.",
		Parameters:  op.Parameters("UUID"),
		Replies:     ordered.Of("200", op.Reply("The token.", op.JSON(token), "Cache-Control")),
		Problems:    []int{400, 401, 403, 404, 409, 429},
		Limit:       httpkit.Read, Run: h.owner(h.providerToken),
	})
}

// providerToken replies with an access token of a provider.
func (h byProvider) providerToken(x *httpkit.Exchange, me *sessions.Session) (op.Outcome, error) {
	uuid, err := x.UUID()
	if err != nil {
		return op.Outcome{}, err
	}
	token, err := h.service.Providers.ProviderToken(x.Context(), me, uuid)
	if err != nil {
		return op.Outcome{}, err
	}
	reply := struct {
		AccessToken string `json:"accessToken"`
		Expires     string `json:"expires,omitempty"`
		Scope       string `json:"scope"`
	}{AccessToken: token.AccessToken, Scope: token.Scope}
	if !token.Expires.IsZero() {
		reply.Expires = object.FormatTime(token.Expires)
	}
	return op.Outcome{Body: reply}, nil
}

// addCallback adds the operations to which providers redirect browsers.
func (h byProvider) addCallback(set *op.Set) {
	var all []any
	for _, name := range []string{"code", "state", "error", "oauth_token", "oauth_verifier", "denied"} {
		all = append(all, op.Query(name, "", op.Text("")))
	}
	set.Add(op.Operation{
		Method: http.MethodGet, Path: "/auth/callback", ID: "returnFromProvider", Summary: "Return from a provider",
		Description: "For browsers, which providers redirect to this URL.",
		Parameters:  append(all, op.Parameters("Prefer")...),
		Replies: ordered.Of("302",
			op.Redirect("To the page of success, or of failure.", "Set-Cookie", "Preference-Applied")),
		Navigation: true, Run: h.callback,
	})
	if !set.Contract.Login.PostsCallback {
		return
	}
	var fields []any
	for _, name := range callbackFields {
		fields = append(fields, name, op.Text(""))
	}
	set.Add(op.Operation{
		Method: http.MethodPost, Path: "/auth/callback", ID: "returnFromProviderByForm",
		Summary:     "Return from a provider, by a form",
		Description: "For browsers, which Apple makes send this form.",
		Body:        op.Body(op.Content(op.FormType, op.Object("", 0, fields...))),
		Replies:     ordered.Of("303", op.Redirect("To the same by GET, or to the page of failure.")),
		Run:         h.postedCallback,
	})
}
