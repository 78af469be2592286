package account

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

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
	return requireTexts("a login and a password are needed", text{fieldLogin, c.Login}, text{fieldPassword, c.Password})
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
	if err := s.takeAttempt(from); err != nil {
		return IssuedSession{}, err
	}
	session, err := s.login(ctx, c, from, false)
	if err == nil || Pending(err) != nil {
		s.returnAttempt(from)
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
	if err := s.takeAttempt(from); err != nil {
		return IssuedSession{}, err
	}
	session, err := s.login(ctx, c, from, true)
	if err == nil || Pending(err) != nil {
		s.returnAttempt(from)
	}
	return session, err
}

func (s *Service) login(ctx context.Context, c Credentials, from Client, adminsOnly bool) (IssuedSession, error) {
	ctx = asService(ctx, "")
	id := emailIdentity(c.Login)
	user, ident, err := s.findOwner(ctx, id)
	if err != nil {
		return IssuedSession{}, err
	}
	if err := s.accounts.try(id.uuid(), failuresOf(ident)); err != nil {
		return IssuedSession{}, err
	}
	right, err := s.verifyPassword(ctx, user, c.Password)
	reason := reasonPassword
	if right && err == nil && adminsOnly {
		right, err = s.isAdmin(ctx, user)
		reason = reasonNoAdmin
	}
	if err != nil {
		s.accounts.undo(id.uuid())
		return IssuedSession{}, err
	}
	if !right {
		s.failed(ctx, id, user, ident, reason)
		if adminsOnly {
			return IssuedSession{}, errs.New(errs.Denied, "the login or the password is wrong, or the account is not that of an admin")
		}
		return IssuedSession{}, s.errLogin(user)
	}
	s.accounts.succeed(id.uuid())
	session, err := s.completeLogin(ctx, user, s.proofBy(emailType, MethodPassword, 1), from)
	if errors.Is(err, ErrDisabled) {
		s.runInBackground(ctx, "recording a failed login", func(ctx context.Context) error {
			return s.recordFailures(ctx, ident.UUID, failures{At: s.now()}, s.auditFailure(user.UUID, ident.UUID, reasonDisabled))
		})
	}
	if err != nil {
		return IssuedSession{}, err
	}
	s.runInBackground(ctx, "recording a login", func(ctx context.Context) error { return s.recordUse(ctx, ident.UUID) })
	return session, nil
}

// failed records that a login to an account has failed.
func (s *Service) failed(ctx context.Context, id identity, user, ident store.Stored, reason string) {
	f := s.accounts.fail(id.uuid())
	if user.UUID != "" {
		s.runInBackground(ctx, "recording a failed login", func(ctx context.Context) error {
			return s.recordFailures(ctx, ident.UUID, f, s.auditFailure(user.UUID, ident.UUID, reason))
		})
	}
}

// errLogin says why a login failed, as far as the configuration allows.
func (s *Service) errLogin(user store.Stored) error {
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
func (s *Service) verifyPassword(ctx context.Context, user store.Stored, password string) (bool, error) {
	encoded, _ := object.Text(object.Field(user.Body, fieldPassword))
	right, weak, err := s.hasher.matches(ctx, encoded, password)
	if err != nil || !right || !weak {
		return right, err
	}
	s.runInBackground(asService(ctx, user.UUID), "replacing a weak hash", func(ctx context.Context) error {
		stronger, err := s.hasher.hash(ctx, password)
		if err != nil {
			return err
		}
		_, err = s.users.Mutate(ctx, user.UUID, func(now store.Stored) (store.Mutation, error) {
			if current, _ := object.Text(object.Field(now.Body, fieldPassword)); current != encoded {
				return store.Mutation{}, nil // the password was changed meanwhile
			}
			fields := object.Object{}
			fields.Set(fieldPassword, stronger)
			return store.Mutation{Fields: fields}, nil
		})
		return ignoreNotFound(err)
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
	if err := s.accounts.try(key, failures{}); err != nil {
		return err
	}
	right, err := s.verifyPassword(ctx, me.User, password)
	if err != nil {
		s.accounts.undo(key)
		return err
	}
	if !right && next != "" && s.now().Sub(me.passwordSet) < UsedTTL && s.accounts.try(key, failures{}) == nil { // it is a guess as well
		repeated, err := s.verifyPassword(ctx, me.User, next)
		if repeated || err != nil {
			s.accounts.undo(key)
			s.accounts.undo(key)
			return cmp.Or(err, errRepeated(Repetition{Act: ActChanged, Known: true}, errs.Denied))
		}
	}
	if !right {
		s.accounts.fail(key)
		s.runInBackground(asService(ctx, me.User.UUID), "recording a wrong password", func(ctx context.Context) error { return s.auditWrongPassword(ctx, me) })
		return errs.New(errs.Denied, "the password is not that of your account")
	}
	s.accounts.succeed(key)
	return nil
}

// recordUse stores in an ident when it was used, and resets its failures. An ident that has been deleted is no error.
func (s *Service) recordUse(ctx context.Context, ident string) error {
	_, err := s.idents.Mutate(ctx, ident, func(store.Stored) (store.Mutation, error) {
		return store.Mutation{Fields: s.useFields()}, nil
	})
	return ignoreNotFound(err)
}

// recordProviderUse stores in an ident when it was used, and the profile and the tokens that came with it.
func (s *Service) recordProviderUse(ctx context.Context, ident string, id identity) (store.Stored, error) {
	return s.idents.Mutate(ctx, ident, func(stored store.Stored) (store.Mutation, error) {
		fields := s.useFields()
		fields.Set("profile", id.merged(object.Field(stored.Body, "profile")))
		s.setTokens(fields, stored, id)
		return store.Mutation{Fields: fields}, nil
	})
}

func (s *Service) useFields() object.Object {
	now := s.now()
	fields := object.Object{fieldFailures: failures{At: now}.encode()}
	fields.Set("lastUsed", timestamp(now))
	return fields
}

// fieldFailures holds the failed logins of an ident.
const fieldFailures = "_failedLogins"

// failuresOf returns the failures that an ident holds; none if it does not exist.
func failuresOf(ident store.Stored) failures {
	var f failures
	stored, err := object.Decode(object.Field(ident.Body, fieldFailures))
	if err != nil {
		return f
	}
	f.Count, _ = strconv.Atoi(string(stored["count"]))
	f.At = timeField(stored, "at")
	return f
}

// encode returns failures as an ident holds them.
func (f failures) encode() []byte {
	o := object.Object{}
	o.Set("count", f.Count)
	o.Set("at", timestamp(f.At))
	return o.Encode()
}

// recordFailures stores failures in an ident, with the event of the last one.
func (s *Service) recordFailures(ctx context.Context, ident string, f failures, failed store.ExtraEvent) error {
	_, err := s.idents.Mutate(ctx, ident, func(stored store.Stored) (store.Mutation, error) {
		merged := failuresOf(stored)
		if !merged.At.After(f.At.Add(time.Millisecond)) { // else there was a later failure, or a login
			merged = failures{Count: max(f.Count, merged.unexpired(f.At).Count), At: f.At}
		}
		return store.Mutation{Fields: object.Object{fieldFailures: merged.encode()}, ExtraEvents: []store.ExtraEvent{failed}}, nil
	})
	return ignoreNotFound(err)
}

// auditFailure is the event of a failed login to an account that exists. Others have none: whoever can name logins must not be able to
// fill the log.
func (s *Service) auditFailure(user, ident, reason string) store.ExtraEvent {
	return s.audit(event.AuthLoginFailed, user, event.AuthDetails{Method: MethodPassword, Factor: ident, Reason: reason})
}

// auditWrongPassword records that somebody in a session did not know the password of its user. The record is the session, whose use
// this is.
func (s *Service) auditWrongPassword(ctx context.Context, me *Session) error {
	failed := s.audit(event.AuthLoginFailed, me.User.UUID, event.AuthDetails{Method: MethodPassword, Session: me.ID, Reason: reasonPassword})
	_, err := s.sessions.Mutate(ctx, me.ID, func(store.Stored) (store.Mutation, error) {
		fields := object.Object{}
		fields.Set("lastUsed", timestamp(s.now()))
		return store.Mutation{Fields: fields, ExtraEvents: []store.ExtraEvent{failed}}, nil
	})
	return ignoreNotFound(err)
}
