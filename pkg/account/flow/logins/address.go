package logins

import (
	"context"
	"errors"

	"belfry/pkg/account/guess"
	"belfry/pkg/account/method"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
)

// byAddress identifies the user of an address by their answer, within the limits of an account. It does the same work
// if there is no such user.
func (s *Flow) byAddress(ctx context.Context, m method.Method, login string, a method.Answer,
	adminsOnly bool) (who method.Identified, err error) {
	id, name := record.AddressIdentity(login), m.About().Name
	user, ident, err := s.DB.FindOwner(ctx, id)
	if err != nil {
		return who, err
	}
	if err := s.Guesses.Accounts.Try(id.UUID(), ident.Failures); err != nil {
		return who, err
	}
	_, right, err := m.Prove(ctx, user, a, "")
	if errors.Is(err, errs.Denied) {
		right, err = false, nil // it counts as wrong
	}
	if f, has := user.Factors.Get(name); has && f.From > record.Timestamp(s.DB.Now()) {
		right = false // otherwise a thief who has added it in a limited session would not have to wait
	}
	reason := name
	if right && err == nil && adminsOnly {
		right, err = s.Sessions.IsAdminUser(ctx, user)
		reason = record.ReasonNoAdmin
	}
	if err != nil {
		s.Guesses.Accounts.Undo(id.UUID())
		return who, err
	}
	tried := guess.Login{Identity: id, User: user.UUID, Ident: ident, Method: name}
	if !right {
		s.Sessions.RunInBackground(ctx, "recording a failed login", s.Guesses.Fail(tried, reason))
		return who, s.loginError(user, name, adminsOnly)
	}
	s.Guesses.Accounts.Succeed(id.UUID())
	who = method.Identified{User: user, Ident: ident,
		Proof: record.Proof{Provider: record.Email, Methods: []string{name}, AAL: m.About().AAL}}
	who.Settle = func(ctx context.Context, _ bool, err error) {
		if errors.Is(err, sessions.ErrDisabled) {
			s.Sessions.RunInBackground(ctx, "recording a failed login", s.Guesses.Refuse(tried, record.ReasonDisabled))
		}
	}
	return who, nil
}

// loginError returns the reason why a login failed, as far as the configuration allows.
func (s *Flow) loginError(user record.User, what string, adminsOnly bool) error {
	if what != record.MethodPassword {
		what = "code"
	}
	switch {
	case adminsOnly:
		return errs.New(errs.Denied, "the login or the %s is wrong, or the user is not an admin", what)
	case s.Email == nil || s.Email.UniformErrors:
		return errs.New(errs.Denied, "the login or the %s is wrong", what)
	case user.UUID == "":
		return errs.New(errs.NotFound, "there is no account with this login")
	default:
		return errs.New(errs.Denied, "the %s is wrong", what)
	}
}
