package passwords

import (
	"cmp"
	"context"

	"belfry/pkg/account/once"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
)

// Credentials are the credentials of a login or a registration.
type Credentials struct {
	Login    string // an e-mail address
	Password string
	Token    string        // of a validation or recovery mail
	Fields   object.Object // the other fields of a registration form
}

// Validate reports Invalid for credentials without a login or a password.
func (c Credentials) Validate() error {
	return sessions.RequireTexts("a login and a password are needed", "login", c.Login, record.FieldPassword,
		c.Password)
}

// Verify reports whether a user has this password. It does the same work
// for a user that does not exist. A hash that is weaker than the configuration
// requires is replaced in the background.
func (s *Method) Verify(ctx context.Context, user record.User, password string) (bool, error) {
	right, weak, err := s.Hasher.matches(ctx, user.Password, password)
	if err != nil || !right || !weak {
		return right, err
	}
	s.Sessions.RunInBackground(record.AsService(ctx, user.UUID), "replacing a weak hash",
		func(ctx context.Context) error {
			stronger, err := s.Hash(ctx, password)
			if err != nil {
				return err
			}
			_, err = s.DB.Users.Change(ctx, user.UUID, func(now *record.User) error {
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

// VerifyCurrent returns Denied unless the password is that of the logged-in user. The limits of a login apply.
func (s *Method) VerifyCurrent(ctx context.Context, me *sessions.Session, password string) error {
	return s.VerifyCurrentOr(ctx, me, password, "")
}

// VerifyCurrentOr is VerifyCurrent for a form that sets a new password. If the password is wrong because the same form
// has changed it in the previous session, the error has a Repetition.
func (s *Method) VerifyCurrentOr(ctx context.Context, me *sessions.Session, password, next string) error {
	key := "user:" + me.User.UUID
	if err := s.Guesses.Accounts.Try(key, record.Failures{}); err != nil {
		return err
	}
	right, err := s.Verify(ctx, me.User, password)
	if err != nil {
		s.Guesses.Accounts.Undo(key)
		return err
	}
	// It is a guess as well.
	if !right && next != "" && s.DB.Now().Sub(me.PasswordSet) < once.UsedTTL &&
		s.Guesses.Accounts.Try(key, record.Failures{}) == nil {
		repeated, err := s.Verify(ctx, me.User, next)
		if repeated || err != nil {
			s.Guesses.Accounts.Undo(key)
			s.Guesses.Accounts.Undo(key)
			return cmp.Or(err, once.ErrRepeated(once.Repetition{Act: record.ActChanged, Known: true}, errs.Denied))
		}
	}
	if !right {
		s.Guesses.Accounts.Fail(key)
		s.Sessions.RunInBackground(record.AsService(ctx, me.User.UUID), "recording a wrong password",
			func(ctx context.Context) error { return s.auditWrongPassword(ctx, me) })
		return errs.New(errs.Denied, "the password is not that of your account")
	}
	s.Guesses.Accounts.Succeed(key)
	return nil
}

// auditWrongPassword records a wrong password in a session. The event is written with the session's record.
func (s *Method) auditWrongPassword(ctx context.Context, me *sessions.Session) error {
	_, err := s.DB.Sessions.Change(ctx, me.ID, func(session *record.Session) error {
		session.LastUsed = s.DB.Now()
		session.Publish(s.DB.Audit(event.AuthLoginFailed, me.User.UUID,
			event.AuthDetails{Method: record.MethodPassword, Session: me.ID, Reason: record.ReasonPassword}))
		return nil
	})
	return record.IgnoreNotFound(err)
}

// RequireProof verifies the password of the logged-in user. RequireFresh applies instead to a user without a password,
// or with a second factor that the session lacks.
func (s *Method) RequireProof(ctx context.Context, me *sessions.Session, password string) error {
	return s.RequireProofOr(ctx, me, password, "")
}

// RequireProofOr is RequireProof for a form that sets a new password, which may be sent again.
func (s *Method) RequireProofOr(ctx context.Context, me *sessions.Session, password, next string) error {
	if !sessions.HasPassword(me) || me.AAL < 2 && s.Sessions.AsksForSecond(ctx, me) {
		return s.Sessions.RequireFresh(ctx, me)
	}
	if err := sessions.RequireComplete(me); err != nil {
		return err
	}
	return s.VerifyCurrentOr(ctx, me, password, next)
}
