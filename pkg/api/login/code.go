package login

import (
	"cmp"
	"context"
	"net/http"

	"belfry/internal/ordered"
	"belfry/pkg/account/sessions"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
	"belfry/pkg/op"
)

// codePath is the route of logins by mail.
const codePath = "/auth/email/code"

// bindingCookie has the secret that binds a login by mail to the browser that asked for it.
const bindingCookie = sessionCookie + "-mail"

// mailRequestForm asks for the mail of a login. An HTML form, which can't PUT, also logs in with the code or token in
// the mail.
type mailRequestForm struct {
	op.Input
	Login   string `form:"login,or=email" doc:"The address"`
	Kind    string `form:"kind" enum:"code,link" doc:"The default is the configured kind, or else code."`
	Binding string `form:"binding" doc:"For clients without cookies: the binding of the previous request, which this one replaces."`
	Code    string `form:"code,html" doc:"The code in the mail."`
	Token   string `form:"token,html" doc:"The token in the link."`
	Page    string `form:"_page,html,hidden"` // of belfry that has the form
}

type mailLoginForm struct {
	op.Input
	Login   string `form:"login,or=email" doc:"The address"`
	Code    string `form:"code" doc:"The code in the mail."`
	Token   string `form:"token" doc:"The token in the link."`
	Binding string `form:"binding" doc:"For clients without cookies: the binding of the request."`
}

// addMailLogin adds the operations of logins by a mail.
func (h mails) addMailLogin(set *op.Set) {
	pending := op.Object("", 2, "binding", op.Text("A secret to send with the code."), "expires",
		ordered.Of("type", "string", "format", "date-time"))
	set.Add(op.Operation{
		Method: http.MethodPost, Path: codePath, ID: "requestLoginMail", Summary: "Request a mail to log in",
		Security: op.Maybe(),
		Description: "The reply does not reveal whether there is an account. The reply to an HTML form is 303; with " +
			"`code` or `token` a form, which can't PUT, logs in here.",
		Parameters: op.Parameters("PreferSession"),
		Body:       op.Form[mailRequestForm](),
		Replies: ordered.Of(
			"200", op.Reply("The same as 202, with `Prefer: return=representation`: the secret that binds the login "+
				"to the client, which is also in the cookie.",
				op.JSON(pending), "Cache-Control", "Set-Cookie", "Preference-Applied"),
			"202", sessionReply("If there is an account, a mail will be sent."),
			"303", pageRedirect("Set-Cookie", "Preference-Applied"),
		),
		Problems: formProblems(),
		Run:      anybody(h.Handler, op.IsHTML, h.requestLogin),
	})
	set.Add(op.Operation{
		Method: http.MethodPut, Path: codePath, ID: "loginByMail", Summary: "Log in by a mail", Security: op.Maybe(),
		Description: "By the code in the mail, or the token in its link, with the cookie or the `binding` of " +
			"the request.",
		Parameters: op.Parameters("PreferSession"),
		Body:       op.Form[mailLoginForm](),
		Replies: ordered.Of(
			"200", issuedReply("Logged in, with `Prefer: return=representation`: for programs, which keep the token."),
			"204", sessionReply("Logged in."),
		),
		Problems: formProblems(),
		Run:      anybody(h.Handler, never, h.loginByMail),
	})
}

// requestLogin requests the mail of a login. The reply is the same whether or not there is an account.
func (h mails) requestLogin(x *httpkit.Exchange, in mailRequestForm) (op.Outcome, error) {
	asked := withQuery(h.MailLoginRedirect, "mail", "sent", "login", in.Login)
	if in.Code != "" || in.Token != "" {
		o, err := h.loginByMail(x, mailLoginForm{in.Input, in.Login, in.Code, in.Token, in.Binding})
		// It can be tried again.
		if reason := formReasonOf(err); in.Code != "" && (reason == "denied" || reason == "limited") {
			o.Failed = asked
		}
		return o, err
	}
	client, err := h.boundClient(x, in.Login, in.Binding)
	if err != nil {
		return h.backTo(x, in.Page, in.Login, "", err), err
	}
	pending, err := h.service.Mails.RequestLogin(x.Context(), in.Login, in.Kind, client)
	if err == nil {
		h.cookies.set(x, bindingCookie, pending.Binding, int(pending.TTL.Seconds()))
	} else if err = unlessMailed(in.HTML && client.Cookie, err); err != nil {
		return h.backTo(x, in.Page, in.Login, "", err), err
	}
	o := op.Outcome{Status: http.StatusAccepted, To: asked}
	if !in.HTML && x.PrefersRepresentation() {
		x.ApplyRepresentation()
		o = op.Outcome{Body: binding{pending.Binding, object.FormatTime(pending.Expires)}}
	}
	return o, nil
}

// binding is what a program, which keeps no cookies, needs to continue a login by mail.
type binding struct {
	Binding string `json:"binding"`
	Expires string `json:"expires"`
}

// boundClient describes the client of a login by mail to an address. A secret in the body takes precedence over that of
// the cookie.
func (h mails) boundClient(x *httpkit.Exchange, login, secret string) (sessions.Client, error) {
	client, err := h.client(x)
	if client.Binding = secret; secret == "" {
		client.Binding, client.Cookie = h.binding(x, login), true
	}
	return client, err
}

// binding returns the secret of the cookie of a login by mail to an address, "" for none.
func (h mails) binding(x *httpkit.Exchange, login string) string {
	return h.service.Mails.BindingSecret(x.Context(), login, h.cookies.values(x.Request, bindingCookie))
}

// loginByMail logs in by the code, or the token of the link, of a mail.
func (h mails) loginByMail(x *httpkit.Exchange, in mailLoginForm) (op.Outcome, error) {
	client, err := h.boundClient(x, in.Login, in.Binding)
	if err != nil {
		return op.Outcome{}, err
	}
	if in.HTML {
		client = knownBrowser(client)
	}
	var session sessions.Issued
	err = h.write(x, func(ctx context.Context) (err error) {
		session, err = h.service.Login.LoginByMail(ctx, in.Login, cmp.Or(in.Code, in.Token), client)
		return err
	})
	if err != nil {
		return op.Outcome{}, err
	}
	h.cookies.set(x, bindingCookie, "", -1)
	if in.HTML {
		defer h.cookies.setBrowser(x, client)
	}
	return h.begun(x, in.HTML, session, withQuery(h.SuccessRedirect, "validation", "email"))
}
