package login

import (
	"encoding/base64"
	"errors"
	"unicode/utf8"

	"belfry/pkg/account/flow/logins"
	"belfry/pkg/account/once"
	"belfry/pkg/account/post"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/op"
)

// Forms of belfry's own pages name their page in the field _page. After a failure the browser is redirected to that
// page with the reason, so that its user can correct the input. Forms of other websites are redirected to the page of
// failures.

// The cookie keeps the address or the name that was entered, for the form: it must be in no URL, which logs and
// histories have. The form that replaces an address keeps the ident of that address and a space before the new one.
const (
	formCookie    = sessionCookie + "-form"
	formCookieTTL = 300 // seconds
	maxKept       = 600 // bytes; the field of a name takes 200 characters
)

// The page of a recovery is also that of the first password of an invited user, by a parameter. The form then has a
// name of its own.
const (
	invitedParameter = "invited"
	invitationForm   = "invitation"
)

// backTo returns the outcome of a form that failed: it leads back to the page of the form, or nowhere if the form is of
// no page of belfry, or can't be corrected there.
func (h *Handler) backTo(x *httpkit.Exchange, page, login, token string, err error) (o op.Outcome) {
	target := ""
	switch page {
	case "login", "register", "recovery", "mail":
		target = h.formPages[page]
	case invitationForm:
		if target = h.formPages["recovery"]; target != "" {
			target = withQuery(target, invitedParameter, "true")
		}
	}
	if target == "" || once.Repeated(err) != nil || logins.Pending(err) != nil || errors.Is(err, post.ErrToken) ||
		errors.Is(err, sessions.ErrDisabled) || errs.KindOf(err) == errs.Internal {
		return o
	}
	o.Failed = target
	if token != "" { // the page has both in its URL, as from the link of the mail
		o.Failed = withQuery(target, "login", login, "token", token)
		return o
	}
	h.cookies.keepTyped(x, login)
	return o
}

// accountForm is the page of the account, which shows the failure at one of its forms.
func (h *Handler) accountForm(name string) string { return withQuery(h.AccountRedirect, "form", name) }

// keepTyped keeps what was entered for the form that is shown again, and forgets what was before.
func (c cookies) keepTyped(x *httpkit.Exchange, text string) {
	if text == "" || len(text) > maxKept || !utf8.ValidString(text) {
		c.forgetTyped(x)
		return
	}
	c.set(x, formCookie, base64.RawURLEncoding.EncodeToString([]byte(text)), formCookieTTL)
}

// forgetTyped removes what was entered, if the browser has not opened the page that shows it: the next user of the
// browser must not see it.
func (c cookies) forgetTyped(x *httpkit.Exchange) {
	if c.value(x.Request, formCookie) != "" {
		c.set(x, formCookie, "", -1)
	}
}

// TakeTyped returns what a form of the browser had when it failed, and removes its cookie; "" for nothing.
func (s *Sessions) TakeTyped(x *httpkit.Exchange) string {
	kept := s.cookies.value(x.Request, formCookie)
	if kept == "" {
		return ""
	}
	s.cookies.set(x, formCookie, "", -1)
	text, err := base64.RawURLEncoding.DecodeString(kept)
	if err != nil || len(text) > maxKept || !utf8.Valid(text) {
		return ""
	}
	return string(text)
}
