package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"belfry/pkg/account/admin"
	"belfry/pkg/account/keys"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// newUser is the form of a new user.
type newUser struct {
	Login                     string
	Machine, Admin, Validated bool
	Name                      string
	Mails, Mail               bool // mails can be sent; one is wanted
	Problem                   string
	Fields                    []errs.Field
}

func (v *usersView) newForm(r *request) error {
	return r.Page("users_new", "Create a user", newUser{Mails: v.Mails, Mail: v.Mails})
}

// create creates a user, or a machine.
func (v *usersView) create(r *request) error {
	values, ctx, err := r.Submitted()
	if err != nil {
		return err
	}
	f := newUser{
		Login: strings.TrimSpace(values.Get("login")), Name: strings.TrimSpace(values.Get("name")),
		Machine: values.Get("kind") == "machine",
		Admin:   values.Get("admin") == "true", Validated: values.Get("validated") == "true", Mails: v.Mails,
		Mail: values.Get("mail") == "true",
	}
	wanted := admin.NewUser{Fields: object.Object{}, Admin: f.Admin, Machine: f.Machine}
	if f.Name != "" {
		wanted.Fields.Set("name", f.Name)
	}
	if !f.Machine {
		wanted.Login, wanted.Password, wanted.Validated = f.Login, values.Get("password"), f.Validated
	}
	user, err := v.Accounts.CreateUser(ctx, wanted)
	var e *errs.Error
	if kind := errs.KindOf(err); errors.As(err, &e) &&
		(kind == errs.Invalid || kind == errs.Exists || kind == errs.Taken) {
		f.Problem, f.Fields = e.Message, e.Fields
		r.RecordError(err)
		return r.page(http.StatusBadRequest, "users_new", "Create a user", f)
	}
	if err != nil {
		return err
	}
	notice := "The user is created."
	if v.Mails && f.Mail && !f.Machine {
		notice = "The user is created, and an invitation will be sent."
		send := func() error { _, err := v.Accounts.Invite(ctx, user.UUID); return err }
		if wanted.Password != "" {
			notice = "The user is created, and a mail to set another password will be sent."
			send = func() error { _, err := v.Accounts.SendRecovery(ctx, user.UUID, ""); return err }
		}
		if err := send(); err != nil {
			r.RecordError(err)
			notice = "The user is created, but no mail will be sent: try again."
		}
	}
	return r.Redirect(pathOf("users", user.UUID), notice)
}

// invite sends an invitation again, or to a user who was created without one.
func (v *usersView) invite(r *request) error {
	return v.change(r, func(ctx context.Context, user store.Stored, _ url.Values) (string, error) {
		address, err := v.Accounts.Invite(ctx, user.UUID)
		return "An invitation will be sent to " + address + ".", err
	})
}

// change does something with the user whom a path names, and shows them again with a notice.
func (v *usersView) change(r *request,
	do func(ctx context.Context, user store.Stored, form url.Values) (notice string, err error)) error {
	ctx, user, form, err := v.sent(r)
	if err != nil {
		return err
	}
	notice, err := do(ctx, user, form)
	if err != nil {
		return err
	}
	return r.Redirect(pathOf("users", user.UUID), notice)
}

// act is a change that needs nothing but the user.
func (v *usersView) act(do func(ctx context.Context, uuid string) (store.Stored, error),
	notice string) func(*request) error {
	return func(r *request) error {
		return v.change(r, func(ctx context.Context, user store.Stored, _ url.Values) (string, error) {
			_, err := do(ctx, user.UUID)
			return notice, err
		})
	}
}

// actOn is a change of one thing of the user, which a parameter of the path names.
func (v *usersView) actOn(param string, do func(ctx context.Context, user, id string) error,
	notice string) func(*request) error {
	return func(r *request) error {
		return v.change(r, func(ctx context.Context, user store.Stored, _ url.Values) (string, error) {
			id, err := r.PathParam(param)
			if err == nil {
				err = do(ctx, user.UUID, id)
			}
			return notice, err
		})
	}
}

// wanted reads what a mark is set to; a form that does not say is refused, rather than taking a right away.
func wanted(form url.Values) (bool, error) {
	switch form.Get("to") {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errs.New(errs.Invalid, "to: expected true or false")
}

func (v *usersView) setAdmin(r *request) error {
	return v.change(r, func(ctx context.Context, user store.Stored, form url.Values) (string, error) {
		admin, err := wanted(form)
		if err != nil {
			return "", err
		}
		if user, err = v.Accounts.SetAdmin(ctx, user.UUID, admin); err != nil {
			return "", err
		}
		a, err := v.Accounts.AccountDetails(ctx, user)
		switch {
		case err != nil:
			return "", err
		case a.Admin != admin && admin:
			return "The field admin is set, but the user is no admin: the rule admins of the configuration is about " +
				"other fields.", nil
		case a.Admin != admin:
			return "The field admin is removed, but the user is an admin still: the rule admins of the configuration " +
				"is about other fields.", nil
		case admin:
			return "The user is an admin.", nil
		}
		return "The user is no longer an admin.", nil
	})
}

func (v *usersView) setDisabled(r *request) error {
	return v.change(r, func(ctx context.Context, user store.Stored, form url.Values) (string, error) {
		disabled, err := wanted(form)
		if err != nil {
			return "", err
		}
		if _, err = v.Accounts.SetDisabled(ctx, user.UUID, disabled); err != nil {
			return "", err
		}
		if disabled {
			return "The user is disabled; all sessions and API keys have ended.", nil
		}
		return "The user is enabled, and has to log in again.", nil
	})
}

func (v *usersView) sendRecovery(r *request) error {
	return v.change(r, func(ctx context.Context, user store.Stored, form url.Values) (string, error) {
		address, err := v.Accounts.SendRecovery(ctx, user.UUID, form.Get("address"))
		return "A mail to set a new password will be sent to " + address + ".", err
	})
}

func (v *usersView) unlink(r *request) error {
	return v.change(r, func(ctx context.Context, user store.Stored, _ url.Values) (string, error) {
		ident, err := r.PathParam("ident")
		if err == nil {
			err = v.Accounts.UnlinkFor(ctx, user.UUID, ident)
		}
		return ident +
			" is no longer a login of the user. Sessions continue: end those that may be of somebody else.", err
	})
}

// resetFactors needs a recent login of the admin: a stolen session of theirs must not become a way into the accounts of
// others.
func (v *usersView) resetFactors(r *request) error {
	return v.change(r, func(ctx context.Context, user store.Stored, _ url.Values) (string, error) {
		if err := r.console.service.Sessions.RequireFresh(ctx, r.Session); err != nil {
			return "", err
		}
		if _, err := v.Accounts.ResetFactors(ctx, user.UUID); err != nil {
			return "", err
		}
		r.Log(slog.LevelInfo, "second factors were reset in the console", slog.String("user", user.UUID),
			slog.String("actor", r.Session.User.UUID))
		return "The second factors of the user are removed, and all sessions and API keys have ended.", nil
	})
}

// keyForm is the form of a new API key.
type keyForm struct {
	Name, Expires, Rule string
	Problem             string
	Fields              []errs.Field
}

// createKey makes an API key, and shows its token in the reply alone.
func (v *usersView) createKey(r *request) error {
	ctx, user, values, err := v.sent(r)
	if err != nil {
		return err
	}
	f := keyForm{Name: strings.TrimSpace(values.Get("name")), Expires: values.Get("expires"),
		Rule: strings.TrimSpace(values.Get("rule"))}
	k := keys.New{Name: f.Name, Rule: f.Rule}
	if f.Expires != "" {
		if k.Expires, err = time.Parse(time.DateOnly, f.Expires); err != nil {
			return errs.New(errs.Invalid, "expires: expected a date such as 2030-12-31")
		}
	}
	key, token, err := v.Accounts.IssueKey(ctx, user, k)
	var e *errs.Error
	if kind := errs.KindOf(err); errors.As(err, &e) &&
		(kind == errs.Invalid || kind == errs.Denied || kind == errs.Conflict) {
		f.Problem, f.Fields = e.Message, e.Fields
		r.RecordError(err)
		return v.showUser(ctx, r, user, http.StatusBadRequest, func(p *userPage) { p.KeyForm = f })
	}
	if err != nil {
		return err
	}
	return v.showUser(ctx, r, user, http.StatusOK, func(p *userPage) { p.NewKey, p.Token = &key, token })
}
