package login

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"belfry/pkg/account"
	"belfry/pkg/api/kit"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// email logs in or registers.
func (h *Handler) email(x *kit.Exchange) error {
	f, err := readForm(x)
	if err == nil {
		if request, ok := f.takeRequest(); ok {
			return h.enterForApplication(x, f, request, h.issueCode)
		}
		if f.html && f.has("newPassword") {
			return h.changePasswordForm(x, f)
		}
		err = h.enter(x, f)
	}
	return h.replyToLogin(x, f, err, "email")
}

// weakReason is why a new password is refused; "" for other errors.
func weakReason(err error) string {
	var refused *account.WeakPassword
	if errors.As(err, &refused) {
		return string(refused.Reason)
	}
	return ""
}

// formReason is the reason for the failure of a form whose error kind has no reason
// of its own.
func formReason(err error) string {
	if weak := weakReason(err); weak != "" {
		return weak
	}
	switch errs.KindOf(err) {
	case errs.Invalid, errs.TooLarge, errs.Unsupported:
		return "invalid"
	}
	return "unavailable"
}

// enter logs in or registers with the fields of a form. The reply to an HTML form
// that succeeded is left to the caller.
func (h *Handler) enter(x *kit.Exchange, f form) error {
	register, err := f.takeBool("register")
	if err != nil {
		return err
	}
	c, err := credentials(f)
	if err != nil {
		return err
	}
	client, err := h.client(x)
	if err != nil {
		return err
	}
	if f.html && register && c.Token == "" && client.Session != nil && !h.service.ValidatesFirst() {
		// The form was sent again, in the session that it has begun, which continues.
		if has, err := h.service.Registration.HasAddress(x.Context(), client.Session, c.Login); has || err != nil {
			return err
		}
	}
	once := f.html && c.Token != ""
	if once {
		client = knownBrowser(client)
	}
	var session account.IssuedSession
	mailed := false
	ctx, _, err := h.calls.Write(x, func(ctx context.Context) (err error) {
		if register {
			session, mailed, err = h.service.Registration.Register(ctx, c, client)
		} else {
			session, err = h.service.Login.Login(ctx, c, client)
		}
		return err
	})
	err = unlessMailed(mailed && f.html, err)
	switch {
	case err != nil:
		return err
	case mailed && f.html:
		redirect(x, http.StatusSeeOther, withQuery(h.register, "mail", "sent"))
		return nil
	case mailed:
		return x.SendStatus(http.StatusAccepted)
	}
	if f.html {
		h.cookies.setSession(x, session)
		if once {
			h.cookies.setBrowser(x, client)
		}
		return nil
	}
	return h.sendSession(ctx, x, session)
}

// sendSession replies with a session that has just been issued: by its cookie, and in the
// body as well where the client prefers that.
func (h *Handler) sendSession(ctx context.Context, x *kit.Exchange, s account.IssuedSession) error {
	h.cookies.setSession(x, s)
	if !x.PrefersRepresentation() {
		return x.SendStatus(http.StatusNoContent)
	}
	return h.sendIssued(ctx, x, s)
}

// sendReplaced is sendSession for a session in place of that of the request, whose call made no write of a client.
func (h *Handler) sendReplaced(x *kit.Exchange, s account.IssuedSession) error {
	ctx, err := h.calls.Client(x)
	if err != nil {
		return err
	}
	return h.sendSession(ctx, x, s)
}

// issuedIfPreferred is the representation of a session in a reply that has more; nil unless the client prefers it.
func (h *Handler) issuedIfPreferred(x *kit.Exchange, s account.IssuedSession) (*issued, error) {
	if !x.PrefersRepresentation() {
		return nil, nil
	}
	ctx, err := h.calls.Client(x)
	if err != nil {
		return nil, err
	}
	x.ApplyRepresentation()
	return h.issuedOf(ctx, s), nil
}

// sendIssued replies with the token of a session that has just been issued, and its user.
func (h *Handler) sendIssued(ctx context.Context, x *kit.Exchange, s account.IssuedSession) error {
	x.ApplyRepresentation()
	return x.SendJSON(h.issuedOf(ctx, s))
}

func (h *Handler) issuedOf(ctx context.Context, s account.IssuedSession) *issued {
	return &issued{Token: s.Token, Expires: object.FormatTime(s.Expires), User: h.service.Sessions.LoggedIn(ctx, &s.Session).Body}
}

// issued is the representation of a session that has just been issued.
type issued struct {
	Token   string          `json:"token"`
	Expires string          `json:"expires"`
	User    json.RawMessage `json:"user"`
}

// credentials removes the fields of a login from a form; the others are fields of
// the user.
func credentials(f form) (account.Credentials, error) {
	login, err := f.takeLogin()
	if err != nil {
		return account.Credentials{}, err
	}
	values, err := f.take("password", "token")
	if err != nil {
		return account.Credentials{}, err
	}
	return account.Credentials{Login: login, Password: values[0], Token: values[1], Fields: f.Object}, nil
}

func (h *Handler) changePassword(x *kit.Exchange) error {
	if _, err := h.requireLogin(x); err != nil {
		return err
	}
	f, err := readForm(x)
	if err != nil {
		return err
	}
	session, err := h.newPassword(x, f)
	if h.repeated(x, err, false) {
		return nil
	}
	if err != nil {
		return err
	}
	return h.sendReplaced(x, session)
}

// newPassword sets a new password by the fields of a form.
func (h *Handler) newPassword(x *kit.Exchange, f form) (account.IssuedSession, error) {
	if _, err := h.requireLogin(x); err != nil {
		return account.IssuedSession{}, err
	}
	values, err := f.take("password", "newPassword")
	if err != nil {
		return account.IssuedSession{}, err
	}
	client, err := h.client(x)
	if err != nil {
		return account.IssuedSession{}, err
	}
	return h.service.Recovery.ChangePassword(x.Context(), values[0], values[1], client)
}

// resendValidation requests the validation mail again; where addresses are validated
// first, the mail of a registration.
func (h *Handler) resendValidation(x *kit.Exchange) error {
	return h.answer(x, h.register, func(f form) (outcome, error) {
		return mailSent, h.requestMail(x, f, h.service.Registration.ResendValidation)
	})
}

// requestRecovery requests the mail of a recovery. An HTML form, which can't PUT, sets
// the new password here as well, by the token of that mail.
func (h *Handler) requestRecovery(x *kit.Exchange) error {
	return h.answer(x, h.recovery, func(f form) (outcome, error) {
		if token := string(f.Object["token"]); f.html && token != "" && token != `""` {
			return passwordSet, h.setPassword(x, f)
		}
		return mailSent, h.requestMail(x, f, h.service.Recovery.Request)
	})
}

// recover sets a new password by the token of a mail.
func (h *Handler) recover(x *kit.Exchange) error {
	f, err := readForm(x)
	if err == nil {
		err = h.setPassword(x, f)
	}
	if h.repeated(x, err, false) {
		return nil
	}
	if err != nil {
		return err
	}
	return x.SendStatus(http.StatusNoContent)
}

// outcome is what a request of an account without a session led to: the status of the
// reply and, for an HTML form, the parameter of the page where its browser continues.
type outcome struct {
	status      int
	name, value string
}

var (
	mailSent    = outcome{http.StatusAccepted, "mail", "sent"}
	passwordSet = outcome{http.StatusNoContent, "password", "set"}
)

// answer reads a form and replies with what act leads to. The browser of an HTML form
// continues at target.
func (h *Handler) answer(x *kit.Exchange, target string, act func(form) (outcome, error)) error {
	f, err := readForm(x)
	var o outcome
	if err == nil {
		o, err = act(f)
		err = unlessMailed(f.html && o == mailSent, err)
	}
	switch {
	case h.repeated(x, err, f.html):
	case !f.html && err != nil:
		return err
	case !f.html:
		return x.SendStatus(o.status)
	case o == passwordSet && errors.Is(err, errs.Denied):
		x.Log(slog.LevelInfo, "a recovery failed", slog.String("reason", "token"), slog.String("error", err.Error()))
		redirect(x, http.StatusSeeOther, withQuery(h.failure, "reason", "token"))
	case err != nil:
		return h.redirectFailure(x, err, formReason(err))
	default:
		redirect(x, http.StatusSeeOther, withQuery(target, o.name, o.value))
	}
	return nil
}

// requestMail requests a mail. The reply does not reveal whether the account
// exists.
func (h *Handler) requestMail(x *kit.Exchange, f form, request func(ctx context.Context, login string, client account.Client) error) error {
	login, err := f.takeLogin()
	if err != nil {
		return err
	}
	client, err := h.client(x)
	if err != nil {
		return err
	}
	return request(x.Context(), login, client)
}

func (h *Handler) setPassword(x *kit.Exchange, f form) error {
	c, err := credentials(f)
	if err != nil {
		return err
	}
	client, err := h.client(x)
	if err != nil {
		return err
	}
	if f.html {
		client = knownBrowser(client)
	}
	err = h.write(x, func(ctx context.Context) error { return h.service.Recovery.Recover(ctx, c, client) })
	if err == nil && f.html {
		h.cookies.setBrowser(x, client)
	}
	return err
}

// followLink serves the link of a mail. A page with a form gets the token in its
// query; the Referrer-Policy keeps it from pages of other origins.
func (h *Handler) followLink(x *kit.Exchange) error {
	query := x.Query()
	login, token := query.Get("login"), query.Get("token")
	client, err := h.client(x)
	if err != nil {
		return h.redirectFailure(x, err, formReason(err))
	}
	client.Binding, client.Cookie = h.binding(x, login), true
	landing, err := h.service.Registration.FollowLink(x.Context(), login, token, client)
	if err == nil && landing.HasForm() {
		h.cookies.setBrowser(x, knownBrowser(client)) // so that a double click of the form is known
	}
	switch {
	case h.repeated(x, err, true):
	case errors.Is(err, errs.Denied):
		redirect(x, http.StatusFound, withQuery(h.failure, "reason", "token"))
	case err != nil:
		return h.redirectFailure(x, err, formReason(err))
	case landing == account.AddressValidated:
		redirect(x, http.StatusFound, withQuery(h.success, "validation", "email"))
	case landing == account.OpenLogin:
		redirect(x, http.StatusFound, withQuery(withQuery(h.mailLogin, "login", login), "token", token))
	case landing == account.OpenLoginElsewhere:
		redirect(x, http.StatusFound, withQuery(h.mailLogin, "browser", "other"))
	case landing == account.OpenAddressChange, landing == account.OpenAddressUndo:
		change := "confirm"
		if landing == account.OpenAddressUndo {
			change = "undo"
		}
		redirect(x, http.StatusFound, withQuery(withQuery(withQuery(h.address, "login", login), "token", token), "change", change))
	case landing == account.OpenRecovery:
		redirect(x, http.StatusFound, withQuery(withQuery(h.recovery, "login", login), "token", token))
	default:
		redirect(x, http.StatusFound, withQuery(withQuery(h.register, "login", login), "token", token))
	}
	return nil
}
