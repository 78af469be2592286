package api

import (
	"context"
	"errors"
	"net/http"

	"belfry/pkg/auth"
	"belfry/pkg/errs"
)

// write makes a write below /auth, which a client may wait for as for any.
func (a *authenticator) write(x *exchange, act func(ctx context.Context) error) error {
	_, _, err := a.server.write(x, act)
	return err
}

// email logs in or registers.
func (a *authenticator) email(x *exchange) error {
	f, err := a.read(x)
	if err == nil {
		err = a.enter(x, f)
	}
	switch {
	case !f.html:
		return err
	case err != nil:
		return a.refuse(x, err, formReason(err))
	case x.status == 0:
		x.sendTo(http.StatusSeeOther, withQuery(a.Success, "validation", "email"))
	}
	return nil
}

// formReason is why a form was refused, where nothing says more.
func formReason(err error) string {
	switch errs.KindOf(err) {
	case errs.Invalid, errs.TooLarge, errs.Unsupported:
		return "invalid"
	}
	return "unavailable"
}

// enter logs in or registers by what a form holds. For an HTML form it leaves
// the reply that there is nothing to say to the caller.
func (a *authenticator) enter(x *exchange, f authForm) error {
	register, err := f.flag("register")
	if err != nil {
		return err
	}
	c, err := credentials(f)
	if err != nil {
		return err
	}
	from, err := a.client(x)
	if err != nil {
		return err
	}
	var in auth.IssuedSession
	mailed := false
	err = a.write(x, func(ctx context.Context) (err error) {
		if register {
			in, mailed, err = a.Service.Register(ctx, c, from)
		} else {
			in, err = a.Service.Login(ctx, c, from)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case mailed && f.html:
		x.sendTo(http.StatusSeeOther, withQuery(a.Register, "mail", "sent"))
		return nil
	case mailed:
		return x.done(http.StatusAccepted)
	}
	a.cookies.keep(x, in)
	if f.html {
		return nil
	}
	return x.done(http.StatusNoContent)
}

// credentials takes the fields that belfry knows out of a form; the others are
// the user's.
func credentials(f authForm) (auth.Credentials, error) {
	login, err := f.login()
	if err != nil {
		return auth.Credentials{}, err
	}
	texts, err := f.texts("password", "token")
	if err != nil {
		return auth.Credentials{}, err
	}
	return auth.Credentials{Login: login, Password: texts[0], Token: texts[1], Fields: f.Object}, nil
}

func (a *authenticator) changePassword(x *exchange) error {
	if _, err := a.need(x); err != nil {
		return err
	}
	f, err := a.read(x)
	if err != nil {
		return err
	}
	texts, err := f.texts("password", "newPassword")
	if err != nil {
		return err
	}
	from, err := a.client(x)
	if err != nil {
		return err
	}
	in, err := a.Service.ChangePassword(a.server.context(x), texts[0], texts[1], from)
	if err != nil {
		return err
	}
	a.cookies.keep(x, in)
	return x.done(http.StatusNoContent)
}

func (a *authenticator) resend(x *exchange) error { return a.mail(x, a.Service.ResendValidation) }
func (a *authenticator) forgot(x *exchange) error { return a.mail(x, a.Service.RequestRecovery) }

// mail asks for a mail. The reply does not tell whether there is an account.
func (a *authenticator) mail(x *exchange, ask func(ctx context.Context, login string, from auth.Client) error) error {
	f, err := a.read(x)
	if err != nil {
		return err
	}
	login, err := f.login()
	if err != nil {
		return err
	}
	from, err := a.client(x)
	if err != nil {
		return err
	}
	if err := ask(a.server.context(x), login, from); err != nil {
		return err
	}
	return x.done(http.StatusAccepted)
}

func (a *authenticator) recover(x *exchange) error {
	f, err := a.read(x)
	if err != nil {
		return err
	}
	c, err := credentials(f)
	if err != nil {
		return err
	}
	from, err := a.client(x)
	if err != nil {
		return err
	}
	if err := a.write(x, func(ctx context.Context) error { return a.Service.Recover(ctx, c, from) }); err != nil {
		return err
	}
	return x.done(http.StatusNoContent)
}

// follow is the visit of a mail's link. A form on another page gets the token
// in the query; no page after it learns where the browser comes from.
func (a *authenticator) follow(x *exchange) error {
	query := x.req.URL.Query()
	login, token := query.Get("login"), query.Get("token")
	from, err := a.client(x)
	if err != nil {
		return a.refuse(x, err, formReason(err))
	}
	landing, err := a.Service.FollowLink(a.server.context(x), login, token, from)
	switch {
	case errors.Is(err, errs.Denied):
		x.sendTo(http.StatusFound, withQuery(a.Failure, "reason", "token"))
	case err != nil:
		return a.refuse(x, err, formReason(err))
	case landing == auth.AddressValidated:
		x.sendTo(http.StatusFound, withQuery(a.Success, "validation", "email"))
	case landing == auth.OpenRecovery:
		x.sendTo(http.StatusFound, withQuery(withQuery(a.Recovery, "login", login), "token", token))
	default:
		x.sendTo(http.StatusFound, withQuery(withQuery(a.Register, "login", login), "token", token))
	}
	return nil
}
