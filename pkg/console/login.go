package console

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"belfry/pkg/account"
	"belfry/pkg/errs"
)

// loginForm is what the login page shows.
type loginForm struct {
	Next, Login string
	Email       bool     // there is a login by e-mail
	Passkeys    bool     // there is one by passkey
	Providers   []string // OAuth
	Problem     string
}

func (c *Console) form(next string) loginForm {
	f := loginForm{Email: c.service.EmailEnabled(), Passkeys: c.service.Passkeys.Enabled(), Providers: c.service.Providers.ProviderNames()}
	if inConsole(next) {
		f.Next = next
	}
	return f
}

// loginPage shows the login page. An admin needs none.
func (c *Console) loginPage(r *request) error {
	f := c.form(r.Query("next"))
	if r.admin {
		r.seeOther(f.target())
		return nil
	}
	return r.Page("login", "Log in", f)
}

// target is where a login leads.
func (f loginForm) target() string {
	if f.Next == "" {
		return Path
	}
	return f.Next
}

// logIn logs in by e-mail, as POST /auth/email does: the same service with its limits, and the same cookie. Where login by
// e-mail is not configured, only admins log in by a password, and only here.
func (c *Console) logIn(r *request) error {
	values, err := r.Form()
	if err != nil {
		return err
	}
	f := c.form(values.Get("next"))
	f.Login = strings.TrimSpace(values.Get("login"))
	from, logIn := r.client(), c.service.Login.Login
	if !f.Email {
		logIn = c.service.Login.LoginAdmin
	}
	var session account.IssuedSession
	_, _, err = c.calls.Write(r.Exchange, func(ctx context.Context) (err error) {
		session, err = logIn(ctx, account.Credentials{Login: f.Login, Password: values.Get("password")}, from)
		return err
	})
	if err == nil {
		c.sessions.Issue(r.Exchange, session)
		r.seeOther(f.target())
		return nil
	}
	if p := account.Pending(err); p != nil {
		c.askSecond(r, p, f.Next)
		return nil
	}
	return r.failLogin(f, err)
}

// logInByPasskey logs in by a passkey, as POST /auth/passkey does. The script has asked POST /auth/passkey/options before.
func (c *Console) logInByPasskey(r *request) error {
	values, err := r.Form()
	if err != nil {
		return err
	}
	f := c.form(values.Get("next"))
	answer, err := c.sessions.TakeAnswer(r.Exchange, values.Get("credential"))
	if err != nil {
		return r.failLogin(f, err)
	}
	var session account.IssuedSession
	_, _, err = c.calls.Write(r.Exchange, func(ctx context.Context) (err error) {
		session, err = c.service.Login.LoginByPasskey(ctx, answer, r.client())
		return err
	})
	if err != nil {
		return r.failLogin(f, err)
	}
	c.sessions.Issue(r.Exchange, session)
	r.seeOther(f.target())
	return nil
}

// failLogin shows the login page with why a login failed, and returns an error that is about something else.
func (r *request) failLogin(f loginForm, err error) error {
	status := http.StatusForbidden
	switch errs.KindOf(err) {
	case errs.Invalid:
		status = http.StatusBadRequest
	case errs.Unauthenticated:
		status = http.StatusUnauthorized
	case errs.NotFound, errs.Denied:
	default:
		return err
	}
	f.Problem, _ = messageOf(err)
	r.RecordError(err)
	return r.page(status, "login", "Log in", f)
}

// logOut ends the session.
func (c *Console) logOut(r *request) error {
	session := r.Session
	if session != nil && session.Key != nil {
		session = nil
	}
	if err := c.sessions.LogOut(r.Exchange, session); err != nil {
		return err
	}
	r.seeOther(Path + "/login")
	return nil
}

// name returns how the user who is logged in is shown: by the address of a login, by a name that the user has, or else by the
// uuid. Workers may not have copied the idents into the user yet.
func (r *request) name() string {
	if logins := loginsIn(r.Session.Visible["idents"]); len(logins) > 0 {
		return strings.TrimSuffix(logins[0], "_email")
	}
	address, err := r.console.service.Users.Address(r.Context(), r.Session.User.UUID)
	if err != nil {
		r.RecordError(err) // the page is shown all the same
	}
	return cmp.Or(address, nameIn(r.Session.Visible.Encode()), r.Session.User.UUID)
}
