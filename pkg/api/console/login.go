package console

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"belfry/pkg/account/flow/logins"
	"belfry/pkg/account/method"
	"belfry/pkg/account/method/about"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
)

// loginForm is the data of the login page.
type loginForm struct {
	Next, Login string
	Email       bool           // login by e-mail is configured
	Methods     []about.Method // of other logins
	Script      bool           // one of them needs the script
	Providers   []string       // OAuth
	Problem     string
}

func (c *Console) form(next string) loginForm {
	f := loginForm{
		Email: c.service.EmailEnabled(), Methods: c.service.Methods.Logins(), Script: c.service.Methods.Scripted(),
		Providers: c.service.Providers.ProviderNames(),
	}
	if inConsole(next) {
		f.Next = next
	}
	return f
}

// loginPage shows the login page. An admin who is logged in is redirected.
func (c *Console) loginPage(r *request) error {
	f := c.form(r.Query("next"))
	if r.admin {
		r.seeOther(f.target())
		return nil
	}
	return r.Page("login", "Log in", f)
}

// target returns the page that a login redirects to.
func (f loginForm) target() string {
	if f.Next == "" {
		return Path
	}
	return f.Next
}

// logIn logs in by e-mail, as POST /auth/email does: the same service with its limits, and the same cookie. Where login
// by e-mail is not configured, only admins log in by a password, and only here.
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
	return c.enter(r, f, func(ctx context.Context) (sessions.Issued, error) {
		return logIn(ctx, passwords.Credentials{Login: f.Login, Password: values.Get("password")}, from)
	})
}

// logInBy logs in by another method, as POST /auth/{method} does. If the method has a challenge, the script has
// requested it before.
func (c *Console) logInBy(r *request, m about.Method) error {
	values, err := r.Form()
	if err != nil {
		return err
	}
	f := c.form(values.Get("next"))
	f.Login = strings.TrimSpace(values.Get("login"))
	answer := method.Answer{Code: values.Get("code")}
	if m.Script {
		if answer.Signed, err = c.sessions.TakeAnswer(r.Exchange, values.Get("credential")); err != nil {
			return r.failLogin(f, err)
		}
	}
	return c.enter(r, f, func(ctx context.Context) (sessions.Issued, error) {
		return c.service.Login.LoginBy(ctx, m.Name, f.Login, answer, r.client())
	})
}

// enter logs in, and redirects to the page on which the login began, or to the page that asks for its second factor.
func (c *Console) enter(r *request, f loginForm, logIn func(ctx context.Context) (sessions.Issued, error)) error {
	var session sessions.Issued
	_, _, err := c.calls.Write(r.Exchange, func(ctx context.Context) (err error) {
		session, err = logIn(ctx)
		return err
	})
	if err == nil {
		c.sessions.Issue(r.Exchange, session)
		r.seeOther(f.target())
		return nil
	}
	if p := logins.Pending(err); p != nil {
		c.askSecond(r, p, f.Next)
		return nil
	}
	return r.failLogin(f, err)
}

// failLogin shows the login page with the reason why a login failed. It returns errors that are not about the login.
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

// name returns the shown name of the logged-in user: the address of a login, a name of the user, or else the uuid.
// Workers may not have copied the idents into the user yet.
func (r *request) name() string {
	if logins := loginsIn(r.Session.Visible["idents"]); len(logins) > 0 {
		return strings.TrimSuffix(logins[0], "_email")
	}
	address, err := r.console.service.Users.Address(r.Context(), r.Session.User.UUID)
	if err != nil {
		r.RecordError(err) // the page is shown anyway
	}
	return cmp.Or(address, nameIn(r.Session.Visible.Encode()), r.Session.User.UUID)
}
