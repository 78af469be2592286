package account

import (
	"cmp"
	"context"
	"errors"
	"time"

	"belfry/pkg/account/guess"
	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// Credentials are what somebody logs in or registers with.
type Credentials struct {
	Login    string // an e-mail address
	Password string
	Token    string        // of a validation or recovery mail
	Fields   object.Object // the other fields of a registration form
}

// requireEmail reports NotFound when login by e-mail is not configured.
func (s *Service) requireEmail() error {
	if s.email == nil {
		return errs.New(errs.NotFound, "login by e-mail is not configured")
	}
	return nil
}

// validate reports Invalid for credentials without a login or a password.
func (c Credentials) validate() error {
	return requireTexts("a login and a password are needed", text{"login", c.Login}, text{record.FieldPassword, c.Password})
}

// Login logs in by address and password.
//
// Errors: Invalid without a login or a password; NotFound for an unknown login
// and Denied for a wrong password, or Denied for both with UniformErrors;
// Limited; Unavailable.
func (s *Service) Login(ctx context.Context, c Credentials, from Client) (IssuedSession, error) {
	if err := s.requireEmail(); err != nil {
		return IssuedSession{}, err
	}
	if err := c.validate(); err != nil {
		return IssuedSession{}, err
	}
	if err := s.guesses.Take(from.Address); err != nil {
		return IssuedSession{}, err
	}
	session, err := s.login(ctx, c, from, false)
	if err == nil || Pending(err) != nil {
		s.guesses.Return(from.Address)
	}
	return session, err
}

// LoginAdmin logs in an admin by address and password, also where login by e-mail is not configured:
// so does who was made an admin by the link for the first one, or by a command.
//
// Errors: Invalid without a login or a password; Denied, the same for an unknown login, a wrong password
// and a user who is no admin; Limited; Unavailable.
func (s *Service) LoginAdmin(ctx context.Context, c Credentials, from Client) (IssuedSession, error) {
	if err := c.validate(); err != nil {
		return IssuedSession{}, err
	}
	if err := s.guesses.Take(from.Address); err != nil {
		return IssuedSession{}, err
	}
	session, err := s.login(ctx, c, from, true)
	if err == nil || Pending(err) != nil {
		s.guesses.Return(from.Address)
	}
	return session, err
}

func (s *Service) login(ctx context.Context, c Credentials, from Client, adminsOnly bool) (IssuedSession, error) {
	ctx = record.AsService(ctx, "")
	id := record.AddressIdentity(c.Login)
	user, ident, err := s.db.FindOwner(ctx, id)
	if err != nil {
		return IssuedSession{}, err
	}
	if err := s.guesses.Accounts.Try(id.UUID(), ident.Failures); err != nil {
		return IssuedSession{}, err
	}
	right, err := s.verifyPassword(ctx, user, c.Password)
	reason := record.ReasonPassword
	if right && err == nil && adminsOnly {
		right, err = s.isAdmin(ctx, user)
		reason = record.ReasonNoAdmin
	}
	if err != nil {
		s.guesses.Accounts.Undo(id.UUID())
		return IssuedSession{}, err
	}
	if !right {
		s.failed(ctx, id, user, ident, reason)
		if adminsOnly {
			return IssuedSession{}, errs.New(errs.Denied, "the login or the password is wrong, or the account is not that of an admin")
		}
		return IssuedSession{}, s.errLogin(user)
	}
	s.guesses.Accounts.Succeed(id.UUID())
	session, err := s.completeLogin(ctx, user, s.proofBy(record.Email, record.MethodPassword, 1), from)
	if errors.Is(err, ErrDisabled) {
		s.runInBackground(ctx, "recording a failed login", func(ctx context.Context) error {
			return s.recordFailures(ctx, ident.UUID, record.Failures{At: s.now()}, s.auditFailure(user.UUID, ident.UUID, record.ReasonDisabled))
		})
	}
	if err != nil {
		return IssuedSession{}, err
	}
	s.runInBackground(ctx, "recording a login", func(ctx context.Context) error { return s.recordUse(ctx, ident.UUID) })
	return session, nil
}

// failed records that a login to an account has failed.
func (s *Service) failed(ctx context.Context, id record.Identity, user record.User, ident record.Ident, reason string) {
	f := s.guesses.Accounts.Fail(id.UUID())
	if user.UUID != "" {
		s.runInBackground(ctx, "recording a failed login", func(ctx context.Context) error {
			return s.recordFailures(ctx, ident.UUID, f, s.auditFailure(user.UUID, ident.UUID, reason))
		})
	}
}

// errLogin says why a login failed, as far as the configuration allows.
func (s *Service) errLogin(user record.User) error {
	switch {
	case s.email.UniformErrors:
		return errs.New(errs.Denied, "the login or the password is wrong")
	case user.UUID == "":
		return errs.New(errs.NotFound, "there is no account with this login")
	default:
		return errs.New(errs.Denied, "the password is wrong")
	}
}

// verifyPassword reports whether a user has this password. It does the same work
// for a user that does not exist. A hash that is weaker than the configuration
// requires is replaced in the background.
func (s *Service) verifyPassword(ctx context.Context, user record.User, password string) (bool, error) {
	right, weak, err := s.hasher.matches(ctx, user.Password, password)
	if err != nil || !right || !weak {
		return right, err
	}
	s.runInBackground(record.AsService(ctx, user.UUID), "replacing a weak hash", func(ctx context.Context) error {
		stronger, err := s.hashPassword(ctx, password)
		if err != nil {
			return err
		}
		_, err = s.db.Users.Change(ctx, user.UUID, func(now *record.User) error {
			if now.Password != user.Password {
				return record.ErrUnchanged // the password was changed meanwhile
			}
			now.Password = stronger
			return nil
		})
		return record.IgnoreNotFound(err)
	})
	return true, nil
}

// verifyCurrentPassword reports Denied unless the password is that of the user
// who is logged in. The limits of a login apply.
func (s *Service) verifyCurrentPassword(ctx context.Context, me *Session, password string) error {
	return s.verifyCurrentPasswordOr(ctx, me, password, "")
}

// verifyCurrentPasswordOr is verifyCurrentPassword for a form that sets a new password. If it is wrong because the same form has
// changed it, in the session that this session has replaced, that is a Repetition.
func (s *Service) verifyCurrentPasswordOr(ctx context.Context, me *Session, password, next string) error {
	key := "user:" + me.User.UUID
	if err := s.guesses.Accounts.Try(key, record.Failures{}); err != nil {
		return err
	}
	right, err := s.verifyPassword(ctx, me.User, password)
	if err != nil {
		s.guesses.Accounts.Undo(key)
		return err
	}
	if !right && next != "" && s.now().Sub(me.passwordSet) < UsedTTL && s.guesses.Accounts.Try(key, record.Failures{}) == nil { // it is a guess as well
		repeated, err := s.verifyPassword(ctx, me.User, next)
		if repeated || err != nil {
			s.guesses.Accounts.Undo(key)
			s.guesses.Accounts.Undo(key)
			return cmp.Or(err, errRepeated(Repetition{Act: ActChanged, Known: true}, errs.Denied))
		}
	}
	if !right {
		s.guesses.Accounts.Fail(key)
		s.runInBackground(record.AsService(ctx, me.User.UUID), "recording a wrong password", func(ctx context.Context) error { return s.auditWrongPassword(ctx, me) })
		return errs.New(errs.Denied, "the password is not that of your account")
	}
	s.guesses.Accounts.Succeed(key)
	return nil
}

// recordUse stores in an ident when it was used, and resets its failures. An ident that has been deleted is no error.
func (s *Service) recordUse(ctx context.Context, ident string) error {
	_, err := s.db.Idents.Change(ctx, ident, func(i *record.Ident) error {
		s.setUsed(i)
		return nil
	})
	return record.IgnoreNotFound(err)
}

// recordProviderUse stores in an ident when it was used, and the profile and the tokens that came with it.
func (s *Service) recordProviderUse(ctx context.Context, ident string, id identity) (record.Ident, error) {
	return s.db.Idents.Change(ctx, ident, func(i *record.Ident) error {
		s.setUsed(i)
		i.Profile = id.Merged(i.Profile).Encode()
		id.setTokens(i)
		return nil
	})
}

func (s *Service) setUsed(i *record.Ident) {
	i.LastUsed = s.now()
	i.Failures = record.Failures{At: i.LastUsed}
}

// recordFailures stores failures in an ident, with the event of the last one.
func (s *Service) recordFailures(ctx context.Context, ident string, f record.Failures, failed store.ExtraEvent) error {
	_, err := s.db.Idents.Change(ctx, ident, func(i *record.Ident) error {
		if !i.Failures.At.After(f.At.Add(time.Millisecond)) { // else there was a later failure, or a login
			i.Failures = record.Failures{Count: max(f.Count, guess.Current(i.Failures, f.At).Count), At: f.At}
		}
		i.Publish(failed)
		return nil
	})
	return record.IgnoreNotFound(err)
}

// auditFailure is the event of a failed login to an account that exists. Others have none: whoever can name logins must not be able to
// fill the log.
func (s *Service) auditFailure(user, ident, reason string) store.ExtraEvent {
	return s.db.Audit(event.AuthLoginFailed, user, event.AuthDetails{Method: record.MethodPassword, Factor: ident, Reason: reason})
}

// auditWrongPassword records that somebody in a session did not know the password of its user. The record is the session, whose use
// this is.
func (s *Service) auditWrongPassword(ctx context.Context, me *Session) error {
	_, err := s.db.Sessions.Change(ctx, me.ID, func(session *record.Session) error {
		session.LastUsed = s.now()
		session.Publish(s.db.Audit(event.AuthLoginFailed, me.User.UUID, event.AuthDetails{Method: record.MethodPassword, Session: me.ID, Reason: record.ReasonPassword}))
		return nil
	})
	return record.IgnoreNotFound(err)
}
