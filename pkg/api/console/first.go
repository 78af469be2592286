package console

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/once"
	"belfry/pkg/account/sessions"
	"belfry/pkg/api/login"
	"belfry/pkg/errs"
)

// FirstAdminPath is the page on which the first admin is made, by the token of a link.
const FirstAdminPath = Path + "/first"

// firstForm is the data of the page.
type firstForm struct {
	Token, Login string
	Problem      string
	Fields       []errs.Field
}

// firstPage shows the form for the first admin to clients with a link. Without a valid link, the reply is the same
// whether or not an admin exists.
func (c *Console) firstPage(r *request) error {
	token, from := r.Query("token"), c.sessions.KnownBrowser(r.Exchange, r.client())
	if err := c.service.FirstAdmin.Check(r.Context(), token, from); err != nil {
		return c.firstAgain(r, err)
	}
	c.sessions.SetBrowser(r.Exchange, from) // so that a double click of the form is known
	return r.Page("first", "Make the first admin", firstForm{Token: token})
}

// firstAgain replies to a link that does not work. It redirects the browser that created the first admin with the link
// to the console.
func (c *Console) firstAgain(r *request, err error) error {
	if again := once.Repeated(err); again != nil && again.Known {
		return r.Redirect(Path, "")
	}
	return err
}

// makeFirst makes the first admin, and logs them in.
func (c *Console) makeFirst(r *request) error {
	values, err := r.Form()
	if err != nil {
		return err
	}
	f := firstForm{Token: values.Get("token"), Login: strings.TrimSpace(values.Get("login"))}
	var session sessions.Issued
	from := c.sessions.KnownBrowser(r.Exchange, r.client())
	_, _, err = c.calls.Write(r.Exchange, func(ctx context.Context) (err error) {
		session, err = c.service.FirstAdmin.Create(ctx, f.Token,
			passwords.Credentials{Login: f.Login, Password: values.Get("password")}, from)
		return err
	})
	switch errs.KindOf(err) {
	case errs.Invalid, errs.Exists, errs.Taken:
		var e *errs.Error
		if err != nil && errors.As(err, &e) {
			f.Problem, f.Fields = e.Message, e.Fields
			r.RecordError(err)
			return r.page(http.StatusBadRequest, "first", "Make the first admin", f)
		}
	}
	if err != nil {
		return c.firstAgain(r, err)
	}
	c.sessions.Issue(r.Exchange, session)
	c.sessions.SetBrowser(r.Exchange, from)
	return r.Redirect(Path, "You are the first admin of this belfry.")
}

// client describes the client of a request that may log in.
func (r *request) client() sessions.Client {
	from := login.ClientOf(r.Exchange, nil)
	if r.Session != nil && r.Session.Key == nil {
		from.Session = r.Session
	}
	return from
}
