package login

import (
	"context"
	"net/http"

	"belfry/internal/ordered"
	"belfry/pkg/account"
	"belfry/pkg/api/kit"
	"belfry/pkg/object"
	"belfry/pkg/op"
)

// codePath is the route of logins by mail.
const codePath = "/auth/email/code"

// bindingCookie has the secret that binds a login by mail to the browser that asked for it.
const bindingCookie = sessionCookie + "-mail"

// requestLogin requests the mail of a login. An HTML form, which can't PUT, logs in here as well, by what that mail
// brought.
func (h *Handler) requestLogin(x *kit.Exchange) error {
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
func (h *Handler) sendLogin(x *kit.Exchange, f form) error {
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
func (h *Handler) boundClient(x *kit.Exchange, login, secret string) (account.Client, error) {
	client, err := h.client(x)
	if client.Binding = secret; secret == "" {
		client.Binding, client.Cookie = h.binding(x, login), true
	}
	return client, err
}

// binding returns the secret of the cookie of a login by mail to an address, "" for none.
func (h *Handler) binding(x *kit.Exchange, login string) string {
	return h.service.Mails.BindingSecret(x.Context(), login, h.cookies.values(x.Request, bindingCookie))
}

// loginByMail logs in by the code, or the token of the link, of a mail.
func (h *Handler) loginByMail(x *kit.Exchange) error {
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
func (h *Handler) enterByMail(x *kit.Exchange, f form) error {
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

// addMailLogin adds the operations of logins by a mail.
func (h *Handler) addMailLogin(set *op.Set) {
	pending := op.Object("", 2, "binding", op.Text("A secret to send with the code."), "expires", ordered.Of("type", "string", "format", "date-time"))
	set.Add(op.Operation{
		Method: http.MethodPost, Path: codePath, ID: "requestLoginMail", Summary: "Ask for a mail to log in", Security: op.Maybe(),
		Description: "The reply does not reveal whether there is an account. That to an HTML form is 303; with `code` or `token` a form, which can't PUT, logs in here.",
		Parameters:  op.Parameters("PreferSession"),
		Body: op.InHTML(op.Form(nil, "login", loginField(), "kind", op.OneOf([]string{"code", "link"}, "By default the one that is configured, or a code."),
			"binding", op.Text("That of the request before, which this one replaces, where cookies are not kept.")), nil,
			"code", op.Text("That of the mail."), "token", op.Text("That of the link.")),
		Replies: ordered.Of(
			"200", op.Reply("The same as 202, where `Prefer: return=representation` was sent: what binds the login to the client, which the cookie has as well.",
				op.JSON(pending), "Cache-Control", "Set-Cookie", "Preference-Applied"),
			"202", begun("If there is an account, a mail will be sent."),
			"303", continued("Set-Cookie", "Preference-Applied"),
		),
		Problems: formProblems(),
		Run:      h.requestLogin,
	})
	set.Add(op.Operation{
		Method: http.MethodPut, Path: codePath, ID: "loginByMail", Summary: "Log in by a mail", Security: op.Maybe(),
		Description: "By its code, or the token of its link, with the cookie or the `binding` of the request.",
		Parameters:  op.Parameters("PreferSession"),
		Body: op.Form(nil, "login", loginField(), "code", op.Text("That of the mail."), "token", op.Text("That of the link."),
			"binding", op.Text("That of the request, where cookies are not kept.")),
		Replies: ordered.Of(
			"200", issuedReply("Logged in, where `Prefer: return=representation` was sent: for programs, which keep the token."),
			"204", begun("Logged in."),
		),
		Problems: formProblems(),
		Run:      h.loginByMail,
	})
}
