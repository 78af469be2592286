package login

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"belfry/pkg/account/once"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
)

const (
	// browserCookie identifies the browser of a repeated request. It grants no rights.
	browserCookie = sessionCookie + "-once"

	// browserAge is how long the cookie lives, in seconds: as long as a user may take for the form that a link opens.
	browserAge = 60 * 60

	// doneParameter is the parameter of the failure page that names the completed action.
	doneParameter = "done"
)

// knownBrowser returns a client whose browser can be recognized, by its cookie or by a new one, which setBrowser sets.
func knownBrowser(client sessions.Client) sessions.Client {
	if client.Browser == "" {
		client.Browser = once.NewBrowser()
	}
	return client
}

// setBrowser sets the cookie that identifies the browser of a client, unless the browser has it.
func (c cookies) setBrowser(x *httpkit.Exchange, client sessions.Client) {
	if client.Browser != c.value(x.Request, browserCookie) {
		c.set(x, browserCookie, client.Browser, browserAge)
	}
}

// Recognize sets the cookie that identifies a browser if it sends the form of the page twice, unless the browser has
// it.
func (s *Sessions) Recognize(x *httpkit.Exchange) {
	s.SetBrowser(x, s.KnownBrowser(x, sessions.Client{}))
}

// unlessMailed returns the error of a form that requests a mail: nil if the form was sent twice and the mail will be
// sent. Programs get the error.
func unlessMailed(html bool, err error) error {
	if html && errors.Is(err, post.ErrMailAsked) {
		return nil
	}
	return err
}

// repeated replies to the repetition of a completed request, and reports whether it did: its caller replies to a
// program with a problem. The browser of the first request is redirected as it was then, and a program in it gets only
// the status. Other clients only learn that the action was completed. The reply neither sets nor removes a cookie.
func (h *Handler) repeated(x *httpkit.Exchange, err error, html bool) bool {
	r := once.Repeated(err)
	if r == nil {
		return false
	}
	x.Header().Del("Set-Cookie")
	switch {
	case r.Known && !html && r.Act != record.ActPasskey: // a program reads the passkey in the reply
		_ = x.SendStatus(http.StatusNoContent) // fails for no status without a body
	case !html:
		return false
	case r.Known:
		x.Log(slog.LevelInfo, "a request was repeated by its browser", slog.String("done", string(r.Act)))
		x.Redirect(h.placeOf(x, r))
	default:
		reason := "token"
		if errs.KindOf(err) != errs.Denied || r.Provider != "" {
			reason = "state"
		}
		x.Log(slog.LevelInfo, "a request was repeated", slog.String("done", string(r.Act)),
			slog.String("reason", reason))
		x.Redirect(withQuery(h.FailureRedirect, reasonParameter, reason, doneParameter, string(r.Act)))
	}
	return true
}

// placeOf is the page to which the browser of the first request was redirected.
func (h *Handler) placeOf(x *httpkit.Exchange, r *once.Repetition) string {
	switch r.Act {
	case record.ActPassword:
		return withQuery(h.RecoveryRedirect, "password", "set")
	case record.ActUndone:
		return withQuery(h.RecoveryRedirect, "mail", "sent")
	case record.ActKept:
		return withQuery(h.AddressRedirect, "change", "kept")
	case record.ActAddress:
		return h.addressConfirmed()
	case record.ActPasskey:
		return withQuery(h.AccountRedirect, outcomeParameter, "passkey-added")
	case record.ActChanged:
		return withQuery(h.AccountRedirect, outcomeParameter, "password-set")
	case record.ActProven:
		return withQuery(h.AccountRedirect, outcomeParameter, "proven")
	}
	provider := r.Provider
	if provider == "" {
		provider = "email"
	}
	if secret := h.service.Login.PendingSecret(x.Context(),
		h.cookies.values(x.Request, pendingCookie)); r.Act == record.ActLoggedIn && secret != "" {
		if factors, err := h.service.Login.PendingFactors(x.Context(), secret); err == nil {
			return withQuery(h.SecondFactorRedirect, "factors", strings.Join(factors, " "))
		}
	}
	return withQuery(h.SuccessRedirect, "validation", provider)
}
