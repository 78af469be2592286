package login

import (
	"context"
	"net/http"

	"belfry/pkg/account"
	"belfry/pkg/api/kit"
	"belfry/pkg/object"
)

// codePath is the route of logins by mail.
const codePath = "/auth/email/code"

// bindingCookie has the secret that binds a login by mail to the browser that asked for it.
const bindingCookie = sessionCookie + "-mail"

// requestLogin requests the mail of a login. An HTML form, which can't PUT, logs in here as well, by what that mail
// brought.
func (h *handler) requestLogin(x *kit.Exchange) error {
	f, err := readForm(x)
	login, _ := object.Text(f.Object["login"])
	code := f.has("code")
	if err == nil && f.html && (code || f.has("token")) {
		err = h.enterByMail(x, f)
		if err == nil {
			redirect(x, http.StatusSeeOther, withQuery(h.success, "validation", "email"))
		}
	} else if err == nil {
		err = h.sendLogin(x, f)
	}
	if h.repeated(x, err, f.html) {
		return nil
	}
	if err != nil && f.html {
		if h.toSecondFactor(x, err, http.StatusSeeOther) {
			return nil
		}
		if reason := formReasonOf(err); code && (reason == "denied" || reason == "limited") { // it can be tried again
			return redirectFailureTo(x, withQuery(withQuery(h.mailLogin, "mail", "sent"), "login", login), err, reason)
		}
		return h.redirectFailure(x, err, formReason(err))
	}
	return err
}

// sendLogin requests the mail of a login. The reply is the same whether or not there is an account.
func (h *handler) sendLogin(x *kit.Exchange, f form) error {
	login, err := f.takeLogin()
	if err != nil {
		return err
	}
	values, err := f.take("kind", "binding")
	if err != nil {
		return err
	}
	client, err := h.boundClient(x, login, values[1])
	if err != nil {
		return err
	}
	pending, err := h.service.Mails.RequestLogin(x.Context(), login, values[0], client)
	if err == nil {
		h.cookies.set(x, bindingCookie, pending.Binding, int(pending.TTL.Seconds()))
	} else if err = unlessMailed(f.html && client.Cookie, err); err != nil {
		return err
	}
	switch {
	case f.html:
		redirect(x, http.StatusSeeOther, withQuery(withQuery(h.mailLogin, "mail", "sent"), "login", login))
		return nil
	case x.PrefersRepresentation():
		x.ApplyRepresentation()
		return x.SendJSON(binding{pending.Binding, object.FormatTime(pending.Expires)})
	}
	return x.SendStatus(http.StatusAccepted)
}

// binding is what a program, which keeps no cookies, needs to continue a login by mail.
type binding struct {
	Binding string `json:"binding"`
	Expires string `json:"expires"`
}

// boundClient describes the client of a login by mail to an address. A secret in the body takes precedence over that of the cookie.
func (h *handler) boundClient(x *kit.Exchange, login, secret string) (account.Client, error) {
	client, err := h.client(x)
	if client.Binding = secret; secret == "" {
		client.Binding, client.Cookie = h.binding(x, login), true
	}
	return client, err
}

// binding returns the secret of the cookie of a login by mail to an address, "" for none.
func (h *handler) binding(x *kit.Exchange, login string) string {
	return h.service.Mails.BindingSecret(x.Context(), login, h.cookies.values(x.Request, bindingCookie))
}

// loginByMail logs in by the code, or the token of the link, of a mail.
func (h *handler) loginByMail(x *kit.Exchange) error {
	f, err := readForm(x)
	if err != nil {
		return err
	}
	if err = h.enterByMail(x, f); h.repeated(x, err, false) {
		return nil
	}
	return h.stepError(x, err)
}

// enterByMail logs in by what a mail brought. The reply to an HTML form that succeeded is left to the caller.
func (h *handler) enterByMail(x *kit.Exchange, f form) error {
	login, err := f.takeLogin()
	if err != nil {
		return err
	}
	values, err := f.take("code", "token", "binding")
	if err != nil {
		return err
	}
	client, err := h.boundClient(x, login, values[2])
	if err != nil {
		return err
	}
	if f.html {
		client = knownBrowser(client)
	}
	code := values[0]
	if code == "" {
		code = values[1]
	}
	var session account.IssuedSession
	ctx, _, err := h.calls.Write(x, func(ctx context.Context) (err error) {
		session, err = h.service.Login.LoginByMail(ctx, login, code, client)
		return err
	})
	if err != nil {
		return err
	}
	h.cookies.set(x, bindingCookie, "", -1)
	if f.html {
		h.cookies.setSession(x, session)
		h.cookies.setBrowser(x, client)
		return nil
	}
	return h.sendSession(ctx, x, session)
}
