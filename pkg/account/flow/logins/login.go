package logins

import (
	"context"

	"belfry/pkg/account/method"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/once"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
)

// Login logs in by address and password.
//
// Errors: Invalid without a login or a password; NotFound for an unknown login
// and Denied for a wrong password, or Denied for both with UniformErrors;
// Limited; Unavailable.
func (s *Flow) Login(ctx context.Context, c passwords.Credentials, from sessions.Client) (sessions.Issued, error) {
	if err := s.Post.RequireEmail(); err != nil {
		return sessions.Issued{}, err
	}
	return s.byPassword(ctx, c, false, from)
}

// LoginAdmin logs in an admin by address and password, even if login by e-mail is not configured. Admins who were
// created by the link for the first admin, or by a command, log in this way.
//
// Errors: Invalid without a login or a password; Denied, the same for an unknown login, a wrong password
// and a user who is not an admin; Limited; Unavailable.
func (s *Flow) LoginAdmin(ctx context.Context, c passwords.Credentials, from sessions.Client) (sessions.Issued, error) {
	return s.byPassword(ctx, c, true, from)
}

func (s *Flow) byPassword(ctx context.Context, c passwords.Credentials, adminsOnly bool,
	from sessions.Client) (sessions.Issued, error) {
	if err := c.Validate(); err != nil {
		return sessions.Issued{}, err
	}
	return s.by(ctx, from, func(ctx context.Context) (method.Identified, error) {
		return s.byAddress(ctx, s.Passwords, c.Login, method.Answer{Code: c.Password}, adminsOnly)
	})
}

// LoginByMail logs in by the code, or the token of the link, of a mail, with the Binding of the request. The code
// proves the address. If nobody had proven the account's address before, all others lose access to the account, as by a
// recovery.
//
// Errors: Invalid without a login or a code; those of mails.Method.Identify; Unavailable.
func (s *Flow) LoginByMail(ctx context.Context, login, code string, from sessions.Client) (sessions.Issued, error) {
	if _, err := s.Mails.MailMethod(""); err != nil {
		return sessions.Issued{}, err
	}
	if err := sessions.RequireTexts("a login and a code are needed", "login", login, "code", code); err != nil {
		return sessions.Issued{}, err
	}
	return s.by(ctx, from, func(ctx context.Context) (method.Identified, error) {
		return s.Mails.Identify(ctx, login, method.Answer{Code: code}, from)
	})
}

// LoginBy logs in by a method, with the address of a user if the method needs one.
//
// Errors: Invalid for a missing or unreadable answer; Denied for a wrong answer, and for a disabled user; NotFound for
// a method that can't begin a login, and as in Login; Limited; Unavailable.
func (s *Flow) LoginBy(ctx context.Context, name, login string, a method.Answer,
	from sessions.Client) (sessions.Issued, error) {
	m := s.Methods.Get(name)
	if m == nil || !m.About().Login {
		return sessions.Issued{}, errs.New(errs.NotFound, "there is no login by %q", name)
	}
	own, identifies := m.(method.Login)
	if !identifies {
		if err := sessions.RequireTexts("a login and a code are needed", "login", login, "code", a.Code); err != nil {
			return sessions.Issued{}, err
		}
	}
	return s.by(ctx, from, func(ctx context.Context) (method.Identified, error) {
		if identifies {
			return own.Identify(ctx, login, a, from)
		}
		return s.byAddress(ctx, m, login, a, false)
	})
}

// by logs in an identified user. All logins use it, except those through a provider, which begin elsewhere.
func (s *Flow) by(ctx context.Context, from sessions.Client,
	identify func(ctx context.Context) (method.Identified, error)) (session sessions.Issued, err error) {
	if err := s.Guesses.Take(from.Address); err != nil {
		return session, err
	}
	ctx = record.AsService(ctx, "")
	who, err := identify(ctx)
	if r := once.Repeated(err); r != nil {
		r.Nowhere = r.Nowhere || from.Application != nil
		s.Guesses.Return(from.Address)
	}
	if err != nil {
		return session, once.Recognize(err, from)
	}
	if who.Address {
		who.User, err = s.proveAddress(ctx, who, from)
	}
	if err == nil {
		who.At = s.DB.Now()
		session, err = s.logIn(ctx, who.User, addressOf(who.Ident), who.Proof, from)
	}
	ok := err == nil || Pending(err) != nil
	if who.Settle != nil {
		who.Settle(ctx, ok, err)
	}
	if ok {
		s.ReturnAttempts(from, who.Methods[0])
	}
	if err != nil {
		return sessions.Issued{}, err
	}
	s.recordUse(ctx, addressOf(who.Ident))
	return session, nil
}

// addressOf returns the uuid of an ident that is an address; "" for others, whose use is recorded with their answers.
func addressOf(ident record.Ident) string {
	if !ident.IsAddress() {
		return ""
	}
	return ident.UUID
}

// recordUse records in the background that a login with an ident has succeeded. It ignores "".
func (s *Flow) recordUse(ctx context.Context, ident string) {
	if at := s.DB.Now(); ident != "" {
		s.Sessions.RunInBackground(ctx, "recording a login",
			func(ctx context.Context) error { return s.Users.RecordUse(ctx, ident, at) })
	}
}

// proveAddress returns the account whose address was just proven. If nobody had proven it before, a stranger may have
// registered the address, and may own the password, sessions and other idents. If the account is in the client's
// session, the client has both the address and the account.
func (s *Flow) proveAddress(ctx context.Context, who method.Identified, from sessions.Client) (record.User, error) {
	id, user := record.AddressIdentity(who.Ident.ID), who.User
	switch {
	case who.Ident.Proven:
		return s.Changes.EndRights(ctx, user, id)
	case from.Session != nil && from.Session.User.UUID == user.UUID:
		return user, s.Links.MarkValidated(ctx, who.Ident.UUID, true)
	}
	return s.Recovery.RecoverAccount(ctx, id, user, who.Ident, "")
}
