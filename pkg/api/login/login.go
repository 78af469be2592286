package login

import (
	"context"
	"errors"
	"net/http"
	"sort"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/account/export"
	"belfry/pkg/account/method/providers"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/op"
	"belfry/pkg/texts"
)

// Options are the options of a Handler.
type Options struct {
	Service *account.Service

	config.BrowserRedirects

	Export *export.Exporter // of the data of a user; nil: nothing

	Profile *Profile // what the contract's Login.Profile names; nil: nothing

	// AccountPage renders the reply to a form of the account page for the logged-in user, and returns its
	// Content-Security-Policy. nil: there is no such page, and forms get the same replies as programs.
	AccountPage func(x *httpkit.Exchange, me *sessions.Session, r AccountReply) (body []byte, policy string, err error)

	// AuthorizePage renders the page that asks for a login for an application.
	AuthorizePage func(*httpkit.Exchange, AuthorizePage) ([]byte, error)

	// FormPages are the paths of belfry's own pages that are served, by their names. A form of the pages login,
	// register and recovery leads back to its page after a failure.
	FormPages map[string]string

	// Activity returns the newest events about the security of a user's account, at most n before a cursor, and the
	// cursor of the next page. nil: there is no route for it.
	Activity func(ctx context.Context, user, cursor string, n int) (page []sessions.Activity, next string, err error)

	// TrustedOrigins may change state besides the origins of the redirect
	// targets and of the service's base URL.
	TrustedOrigins []string
}

// Origins returns the origins that the options trust.
func (o Options) Origins() *httpkit.Origins {
	origins := httpkit.NewOrigins(o.Service.BaseURL(), append(o.Targets(), o.TrustedOrigins...)...)
	if o.Service.Providers.PostsCallback() {
		origins.Open(providers.CallbackPath)
	}
	return origins
}

// Handler serves the operations below /auth.
type Handler struct {
	service *account.Service
	calls   *httpkit.Calls
	origins *httpkit.Origins
	own     *httpkit.Origins // belfry's own alone
	cookies cookies

	config.BrowserRedirects

	authorizePage func(*httpkit.Exchange, AuthorizePage) ([]byte, error)
	accountPage   func(x *httpkit.Exchange, me *sessions.Session, r AccountReply) ([]byte, string, error)
	readActivity  func(ctx context.Context, user, cursor string, n int) ([]sessions.Activity, string, error)
	exporter      *export.Exporter
	formPages     map[string]string // see Options
	profile       *Profile
}

// These types serve the operations of one subject each, with the shared Handler.
type (
	mails             struct{ *Handler } // logins and addresses by e-mail
	secondFactors     struct{ *Handler }
	passkeyRoutes     struct{ *Handler }
	byProvider        struct{ *Handler } // logins by providers, and their tokens
	applicationRoutes struct{ *Handler } // which users log in for
)

// NewHandler returns the handler of the operations below /auth.
func NewHandler(calls *httpkit.Calls, origins *httpkit.Origins, o Options) *Handler {
	return &Handler{
		service: o.Service, calls: calls, origins: origins, own: httpkit.NewOrigins(o.Service.BaseURL()),
		cookies:          cookiesFor(o.Service),
		BrowserRedirects: o.BrowserRedirects, authorizePage: o.AuthorizePage, accountPage: o.AccountPage,
		readActivity: o.Activity, exporter: o.Export, formPages: o.FormPages, profile: o.Profile,
	}
}

// providers lists the ways to log in.
func (h *Handler) providers(x *httpkit.Exchange) error {
	type provider struct {
		Name string `json:"name"`
		URL  string `json:"url"`
	}
	list := []provider{}
	add := func(name, path string) { list = append(list, provider{name, x.Base().Below(path)}) }
	if h.service.EmailEnabled() {
		add("email", "/auth/email")
	}
	for _, m := range h.service.Methods.Logins() {
		add(m.Name, "/auth/"+m.Name)
	}
	for _, name := range h.service.Providers.ProviderNames() {
		add(name, "/auth/"+name)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return x.SendJSON(map[string]any{"providers": list})
}

// me replies with the logged-in user.
func (h *Handler) me(x *httpkit.Exchange) error {
	session, err := h.require(x)
	if err != nil {
		return err
	}
	user, err := h.service.Sessions.VisibleUser(x.Context(), session)
	if err != nil {
		return err
	}
	x.SetHeader("Cache-Control", httpkit.NoStore)
	x.SendObject(http.StatusOK, user)
	return nil
}

// require returns the session of a request that needs one.
func (h *Handler) require(x *httpkit.Exchange) (*sessions.Session, error) {
	session, err := h.calls.Session(x)
	if err == nil && session == nil {
		err = errs.New(errs.Unauthenticated, "log in first, with a cookie or an Authorization: Bearer header")
	}
	return session, err
}

// requireLogin returns the session of a request that needs one of a login: an API key does not manage the account.
func (h *Handler) requireLogin(x *httpkit.Exchange) (*sessions.Session, error) {
	session, err := h.require(x)
	if err == nil {
		err = sessions.RequireLogin(session)
	}
	return session, err
}

// logout ends the session. The browser of an HTML form, which can't DELETE, is redirected to the page of a successful
// login.
func (h *Handler) logout(html bool) httpkit.Handler {
	return func(x *httpkit.Exchange) error {
		session, err := h.calls.Session(x)
		if err == nil {
			err = sessions.RequireLogin(session)
		}
		if err == nil {
			err = (&Sessions{h.service, h.cookies}).LogOut(x, session)
		}
		if err != nil {
			return err
		}
		return op.Outcome{To: h.SuccessRedirect}.Send(x, html)
	}
}

// write makes a write. As with any other write, the client may wait for its consequences.
func (h *Handler) write(x *httpkit.Exchange, act func(ctx context.Context) error) error {
	_, _, err := h.calls.Write(x, act)
	return err
}

// InLanguage returns a handler whose requests have the language of their client. Mails that they ask for are in it.
func InLanguage(service *account.Service, run httpkit.Handler) httpkit.Handler {
	return func(x *httpkit.Exchange) error {
		if accept := texts.Accepted(x.Request.Header); accept != "" {
			x.Request = x.Request.WithContext(texts.WithLanguage(x.Request.Context(), service.Language(accept)))
		}
		return run(x)
	}
}

// inLanguage is InLanguage. Documents are made of operations without a handler.
func (h *Handler) inLanguage(run httpkit.Handler) httpkit.Handler {
	if h == nil {
		return run
	}
	return InLanguage(h.service, run)
}

// ClientOf describes the client of a request that has its language.
func ClientOf(x *httpkit.Exchange, session *sessions.Session) sessions.Client {
	return sessions.Client{Address: x.Address, UserAgent: x.UserAgent(), Session: session,
		Language: texts.Asked(x.Context())}
}

// client describes the client of a login. A login needs no valid token, so an invalid one counts as none for the rest
// of the request. An API key is Denied: the login would end it, or link to its user.
func (h *Handler) client(x *httpkit.Exchange) (sessions.Client, error) {
	session, err := h.calls.Session(x)
	if errors.Is(err, errs.Unauthenticated) {
		h.calls.Anonymous(x)
		err = nil
	}
	if err == nil {
		err = sessions.RequireLogin(session)
	}
	client := ClientOf(x, session)
	if devices := h.cookies.values(x.Request, deviceCookie); len(devices) > 0 {
		client.Device, client.Devices = devices[0], devices[1:]
	}
	if browsers := h.cookies.values(x.Request, browserCookie); len(browsers) > 0 {
		client.Browser, client.Browsers = browsers[0], browsers[1:]
	}
	return client, err
}
