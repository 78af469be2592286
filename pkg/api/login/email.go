package login

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/once"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
	"belfry/pkg/op"
)

type emailForm struct {
	op.Input
	Login    string `form:"login,or=email" doc:"The address"`
	Password string `form:"password,required=program,password" doc:"A new one has 8 to 1024 bytes, and is not weak."`
	Register bool   `form:"register" doc:"Whether to register."`
	Token    string `form:"token" doc:"The token in the validation mail."`

	NewPassword string  `form:"newPassword,html,password" doc:"The logged-in user's new password."`
	Page        string  `form:"_page,html,hidden"` // of belfry that has the form
	Authorize   *string `form:"authorize,html" doc:"The query of the page by which an application logs in."`

	Fields object.Object `form:"*"` // of the user who registers
}

func (in emailForm) credentials() passwords.Credentials {
	return passwords.Credentials{Login: in.Login, Password: in.Password, Token: in.Token, Fields: in.Fields}
}

// email logs in or registers. An HTML form may do so for an application, and changes the password, which it can't PUT.
func (h mails) email(x *httpkit.Exchange, in emailForm) (op.Outcome, error) {
	switch {
	case in.Authorize != nil:
		return applicationRoutes(h).enterForApplication(x, *in.Authorize, in.Login, in.Register,
			func(app *record.Application) (sessions.Issued, bool, error) {
				client, err := applicationRoutes(h).clientFor(x, app)
				if err != nil {
					return sessions.Issued{}, false, err
				}
				return h.enter(x, in, client)
			})
	case in.NewPassword != "":
		me, err := h.requireLogin(x)
		o := op.Outcome{Failed: h.accountForm("password")}
		if err == nil {
			o, err = h.changePassword(x, me,
				passwordForm{Input: in.Input, Password: in.Password, NewPassword: in.NewPassword})
		}
		return op.Outcome{}, h.replyToOwner(x, true, o, err)
	}
	client, err := h.client(x)
	if err != nil {
		return op.Outcome{}, err
	}
	to := withQuery(h.SuccessRedirect, "validation", "email")
	if in.HTML && in.Register && in.Token == "" && client.Session != nil && !h.service.ValidatesFirst() {
		// The form was sent again in the session that it has begun. The session continues.
		if has, err := h.service.Registration.HasAddress(x.Context(), client.Session, in.Login); has || err != nil {
			return op.Outcome{To: to}, err
		}
	}
	once := in.HTML && in.Token != ""
	if once {
		client = knownBrowser(client)
	}
	session, mailed, err := h.enter(x, in, client)
	if err = unlessMailed(mailed && in.HTML, err); err != nil {
		return h.backTo(x, in.Page, in.Login, in.Token, err), err
	}
	if mailed {
		return op.Outcome{Status: http.StatusAccepted, To: withQuery(h.RegisterRedirect, "mail", "sent")}, nil
	}
	if once {
		defer h.cookies.setBrowser(x, client)
	}
	return h.begun(x, in.HTML, session, to)
}

// enter logs in or registers, for which a mail may be sent.
func (h mails) enter(x *httpkit.Exchange, in emailForm,
	client sessions.Client) (session sessions.Issued, mailed bool, err error) {
	err = h.write(x, func(ctx context.Context) (err error) {
		if in.Register {
			session, mailed, err = h.service.Registration.Register(ctx, in.credentials(), client)
		} else {
			session, err = h.service.Login.Login(ctx, in.credentials(), client)
		}
		return err
	})
	return session, mailed, err
}

// weakReason returns the reason why a new password is refused; "" for other errors.
func weakReason(err error) string {
	var refused *passwords.WeakPassword
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

// issuedIfPreferred is the representation of a session in a reply; nil unless a program prefers it.
func (h *Handler) issuedIfPreferred(x *httpkit.Exchange, html bool, s sessions.Issued) (*issued, error) {
	if html || !x.PrefersRepresentation() {
		return nil, nil
	}
	ctx, err := h.calls.Client(x)
	if err != nil {
		return nil, err
	}
	x.ApplyRepresentation()
	return h.issuedOf(ctx, s), nil
}

func (h *Handler) issuedOf(ctx context.Context, s sessions.Issued) *issued {
	return &issued{Token: s.Token, Expires: object.FormatTime(s.Expires),
		User: h.service.Sessions.LoggedIn(ctx, &s.Session).Body}
}

// issued is the representation of a session that has just been issued.
type issued struct {
	Token   string          `json:"token"`
	Expires string          `json:"expires"`
	User    json.RawMessage `json:"user"`
}

type passwordForm struct {
	op.Input
	Password    string `form:"password,password" doc:"The present password, if there is one."`
	NewPassword string `form:"newPassword,required,password" doc:"8 to 1024 bytes, and not weak."`
}

// changePassword sets a new password.
func (h mails) changePassword(x *httpkit.Exchange, _ *sessions.Session, in passwordForm) (op.Outcome, error) {
	client, err := h.client(x)
	if err != nil {
		return op.Outcome{}, err
	}
	session, err := h.service.Recovery.ChangePassword(x.Context(), in.Password, in.NewPassword, client)
	if err != nil {
		return op.Outcome{Failed: h.accountForm("password")}, err
	}
	return h.begun(x, in.HTML, session, h.ofAccount("password-set").To)
}

// mailForm asks for a mail. An HTML form, which can't PUT, sets a new password as well, by the token of that mail.
type mailForm struct {
	op.Input
	Login    string `form:"login,or=email" doc:"The address"`
	Token    string `form:"token,html" doc:"The token in the mail."`
	Password string `form:"password,html,password" doc:"The new password."`
	Page     string `form:"_page,html,hidden"` // of belfry that has the form
}

// addressOnly asks for a mail.
type addressOnly struct {
	op.Input
	Login string `form:"login,or=email" doc:"The address"`
	Page  string `form:"_page,html,hidden"` // of belfry that has the form
}

// resendValidation requests the validation mail again, or if addresses are validated first, the mail of a registration.
func (h mails) resendValidation(x *httpkit.Exchange, in addressOnly) (op.Outcome, error) {
	return h.requestMail(x, in, h.RegisterRedirect, h.service.Registration.ResendValidation)
}

// requestRecovery requests the mail of a recovery.
func (h mails) requestRecovery(x *httpkit.Exchange, in mailForm) (op.Outcome, error) {
	if in.Token == "" {
		return h.requestMail(x, addressOnly{in.Input, in.Login, in.Page}, h.RecoveryRedirect,
			h.service.Recovery.Request)
	}
	o, err := h.recover(x, recoveryForm{in.Input, in.Login, in.Token, in.Password})
	if errors.Is(err, errs.Denied) && once.Repeated(err) == nil {
		err = errs.Wrap(post.ErrToken, errs.Denied, "%v", err)
	}
	if err != nil {
		o = h.backTo(x, in.Page, in.Login, in.Token, err)
	}
	return o, err
}

// requestMail requests a mail. The reply does not reveal whether the account
// exists.
func (h mails) requestMail(x *httpkit.Exchange, in addressOnly, page string,
	request func(ctx context.Context, login string, client sessions.Client) error) (op.Outcome, error) {
	client, err := h.client(x)
	if err == nil {
		err = unlessMailed(in.HTML, request(x.Context(), in.Login, client))
	}
	if err != nil {
		return h.backTo(x, in.Page, in.Login, "", err), err
	}
	return op.Outcome{Status: http.StatusAccepted, To: withQuery(page, "mail", "sent")}, nil
}

type recoveryForm struct {
	op.Input
	Login    string `form:"login,or=email" doc:"The address"`
	Token    string `form:"token,required" doc:"The token in the mail."`
	Password string `form:"password,required,password" doc:"The new password: 8 to 1024 bytes, and not weak."`
}

// recover sets a new password by the token of a mail.
func (h mails) recover(x *httpkit.Exchange, in recoveryForm) (op.Outcome, error) {
	client, err := h.client(x)
	if err != nil {
		return op.Outcome{}, err
	}
	if in.HTML {
		client = knownBrowser(client)
	}
	c := passwords.Credentials{Login: in.Login, Password: in.Password, Token: in.Token, Fields: in.Rest}
	if err := h.write(x,
		func(ctx context.Context) error { return h.service.Recovery.Recover(ctx, c, client) }); err != nil {
		return op.Outcome{}, err
	}
	if in.HTML {
		h.cookies.setBrowser(x, client)
	}
	return op.Outcome{To: withQuery(h.RecoveryRedirect, "password", "set")}, nil
}

// followLink serves the link of a mail. A page with a form gets the token in its
// query; the Referrer-Policy keeps it from pages of other origins.
func (h mails) followLink(x *httpkit.Exchange) error {
	query := x.Query()
	login, token := query.Get("login"), secret.TypedToken(query.Get("token"))
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
		x.Redirect(withQuery(h.FailureRedirect, "reason", "token"))
	case err != nil:
		return h.redirectFailure(x, err, formReason(err))
	case landing == post.AddressValidated:
		x.Redirect(withQuery(h.SuccessRedirect, "validation", "email"))
	case landing == post.OpenLogin:
		x.Redirect(withQuery(h.MailLoginRedirect, "login", login, "token", token))
	case landing == post.OpenLoginElsewhere:
		x.Redirect(withQuery(h.MailLoginRedirect, "browser", "other"))
	case landing == post.OpenAddressChange, landing == post.OpenAddressUndo:
		change := "confirm"
		if landing == post.OpenAddressUndo {
			change = "undo"
		}
		x.Redirect(withQuery(h.AddressRedirect, "login", login, "token", token, "change", change))
	case landing == post.OpenRecovery:
		x.Redirect(withQuery(h.RecoveryRedirect, "login", login, "token", token))
	case landing == post.OpenInvitation:
		x.Redirect(withQuery(h.RecoveryRedirect, "login", login, "token", token, invitedParameter, "true"))
	default:
		x.Redirect(withQuery(h.RegisterRedirect, "login", login, "token", token))
	}
	return nil
}
