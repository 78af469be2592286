package console

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"belfry/pkg/auth"
	"belfry/pkg/errs"
)

// FirstAdminPath is the page on which the first admin is made, by the token of a link.
const FirstAdminPath = Path + "/first"

// firstForm is what the page shows.
type firstForm struct {
	Token, Login string
	Problem      string
	Fields       []errs.Field
}

// firstPage shows the form for the first admin to who has a link. Who has none learns nothing: the reply is
// the same whether or not there is an admin.
func (c *Console) firstPage(r *request) error {
	token := r.Query("token")
	if err := c.service.CheckFirstAdmin(r.Context(), token, r.client()); err != nil {
		return err
	}
	return r.Page("first", "Make the first admin", firstForm{Token: token})
}

// makeFirst makes the first admin, and logs them in.
func (c *Console) makeFirst(r *request) error {
	values, err := r.Form()
	if err != nil {
		return err
	}
	f := firstForm{Token: values.Get("token"), Login: strings.TrimSpace(values.Get("login"))}
	var session auth.IssuedSession
	_, _, err = c.calls.Write(r.Exchange, func(ctx context.Context) (err error) {
		session, err = c.service.CreateFirstAdmin(ctx, f.Token, auth.Credentials{Login: f.Login, Password: values.Get("password")}, r.client())
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
		return err
	}
	c.sessions.Issue(r.Exchange, session)
	return r.Redirect(Path, "You are the first admin of this belfry.")
}

// client describes who sends a request that may log in.
func (r *request) client() auth.Client {
	from := auth.Client{Address: r.Address, UserAgent: r.UserAgent()}
	if r.Session != nil && r.Session.Key == nil {
		from.Session = r.Session
	}
	return from
}
