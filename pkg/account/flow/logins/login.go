package logins

import (
	"context"
	"errors"

	"belfry/pkg/account/method/passwords"
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
	if err := c.Validate(); err != nil {
		return sessions.Issued{}, err
	}
	if err := s.Guesses.Take(from.Address); err != nil {
		return sessions.Issued{}, err
	}
	session, err := s.login(ctx, c, from, false)
	if err == nil || Pending(err) != nil {
		s.Guesses.Return(from.Address)
	}
	return session, err
}

// LoginAdmin logs in an admin by address and password, also where login by e-mail is not configured:
// so does who was made an admin by the link for the first one, or by a command.
//
// Errors: Invalid without a login or a password; Denied, the same for an unknown login, a wrong password
// and a user who is no admin; Limited; Unavailable.
func (s *Flow) LoginAdmin(ctx context.Context, c passwords.Credentials, from sessions.Client) (sessions.Issued, error) {
	if err := c.Validate(); err != nil {
		return sessions.Issued{}, err
	}
	if err := s.Guesses.Take(from.Address); err != nil {
		return sessions.Issued{}, err
	}
	session, err := s.login(ctx, c, from, true)
	if err == nil || Pending(err) != nil {
		s.Guesses.Return(from.Address)
	}
	return session, err
}

func (s *Flow) login(ctx context.Context, c passwords.Credentials, from sessions.Client, adminsOnly bool) (sessions.Issued, error) {
	ctx = record.AsService(ctx, "")
	id := record.AddressIdentity(c.Login)
	user, ident, err := s.DB.FindOwner(ctx, id)
	if err != nil {
		return sessions.Issued{}, err
	}
	if err := s.Guesses.Accounts.Try(id.UUID(), ident.Failures); err != nil {
		return sessions.Issued{}, err
	}
	right, err := s.Passwords.Verify(ctx, user, c.Password)
	reason := record.ReasonPassword
	if right && err == nil && adminsOnly {
		right, err = s.Sessions.IsAdminUser(ctx, user)
		reason = record.ReasonNoAdmin
	}
	if err != nil {
		s.Guesses.Accounts.Undo(id.UUID())
		return sessions.Issued{}, err
	}
	if !right {
		s.Passwords.Failed(ctx, id, user, ident, reason)
		if adminsOnly {
			return sessions.Issued{}, errs.New(errs.Denied, "the login or the password is wrong, or the account is not that of an admin")
		}
		return sessions.Issued{}, s.Passwords.LoginError(user)
	}
	s.Guesses.Accounts.Succeed(id.UUID())
	session, err := s.LogIn(ctx, user, s.Sessions.ProofBy(record.Email, record.MethodPassword, 1), from)
	if errors.Is(err, sessions.ErrDisabled) {
		s.Sessions.RunInBackground(ctx, "recording a failed login", func(ctx context.Context) error {
			return s.Passwords.RecordFailures(ctx, ident.UUID, record.Failures{At: s.DB.Now()}, s.Passwords.AuditFailure(user.UUID, ident.UUID, record.ReasonDisabled))
		})
	}
	if err != nil {
		return sessions.Issued{}, err
	}
	s.Sessions.RunInBackground(ctx, "recording a login", func(ctx context.Context) error { return s.Users.RecordUse(ctx, ident.UUID) })
	return session, nil
}
