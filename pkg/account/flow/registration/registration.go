package registration

import (
	"context"
	"errors"

	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/once"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/account/users"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// Register registers a user by address and password. If addresses are validated first and there is no token, it
// requests the mail with the token, and mailed is true. While somebody is logged in, the address is added to their
// account and no user is created.
//
// Errors: Invalid; Denied for a wrong token, with a Repetition for one that was used, or a password that is not that of
// the account; Exists when the login is taken; Limited; TooLarge.
func (s *Flow) Register(ctx context.Context, c passwords.Credentials,
	from sessions.Client) (session sessions.Issued, mailed bool, err error) {
	if err := s.Post.RequireEmail(); err != nil {
		return session, false, err
	}
	if err := c.Validate(); err != nil {
		return session, false, err
	}
	if _, err := record.NormalizeAddress(c.Login); err != nil {
		return session, false, err
	}
	if err := passwords.CheckLength(record.FieldPassword, c.Password); err != nil {
		return session, false, err
	}
	if err := s.Guesses.Take(from.Address); err != nil {
		return session, false, err
	}
	// A user who adds an address to an account with a password enters that password.
	if !sessions.HasPassword(from.Session) {
		own := c.Own()
		if from.Session != nil {
			known, err := s.Passwords.OwnOf(ctx, from.Session.User)
			if err != nil {
				return session, false, err
			}
			own = append(own, known...)
		}
		if err := s.Passwords.CheckNew(ctx, record.FieldPassword, c.Password, own); err != nil {
			return session, false, err
		}
	}
	id := record.AddressIdentity(c.Login)
	if !s.Email.PostValidation && c.Token == "" {
		return session, true, s.requestRegistrationMail(ctx, id)
	}
	if from.Session != nil {
		session, err = s.linkAddress(ctx, id, c, from)
	} else {
		session, err = s.registerByEmail(ctx, id, c, from)
	}
	var taken error
	if c.Token == "" && errors.Is(err, errs.Exists) {
		taken = err
		err = s.registeredBefore(ctx, id, taken, from)
	}
	if once.Repeated(err) != nil {
		err = s.Passwords.RepeatedForm(ctx, id, c.Password, err, taken, from)
	}
	return session, false, err
}

// registerByEmail creates a user and logs them in.
func (s *Flow) registerByEmail(ctx context.Context, id record.Identity, c passwords.Credentials,
	from sessions.Client) (sessions.Issued, error) {
	reg, err := s.prepareRegistration(ctx, id, c)
	if err != nil {
		return sessions.Issued{}, err
	}
	if reg.Validated, err = s.consumeRegistrationToken(ctx, id, c.Token, from); err != nil {
		return sessions.Issued{}, err
	}
	ended, err := s.beginRegistration(ctx, id, c.Token, from)
	if err != nil {
		return sessions.Issued{}, err
	}
	reg.Used = true
	user, err := s.Users.Create(ctx, reg)
	if ended(err == nil); err != nil {
		return sessions.Issued{}, err
	}
	s.requestValidation(ctx, id)
	return s.Login.LogIn(ctx, user, s.Sessions.ProofBy(record.Email, record.MethodPassword, 1), from)
}

// prepareRegistration makes a user of a registration form. All checks of the form are made here, before the token is
// consumed.
func (s *Flow) prepareRegistration(ctx context.Context, id record.Identity,
	c passwords.Credentials) (users.New, error) {
	reg := users.New{Identity: users.Identity{Identity: id}, Datas: object.Object{}}
	for name, value := range c.Fields {
		// A form may repeat the password in a field of any name.
		if text, ok := object.Text(value); !ok || passwords.PasswordForm(text) != passwords.PasswordForm(c.Password) {
			reg.Datas[name] = value
		}
	}
	var err error
	if reg.Fields, err = s.DB.Users.Store.SettableByAnonymous(ctx, reg.Datas); err != nil {
		return users.New{}, err
	}
	reg.Datas.Set("login", id.ID)
	reg.Fields.Set(record.FieldPassword, s.Passwords.Dummy()) // has the length of a hash
	if err := s.DB.Users.Store.Check(record.AsService(ctx, ""), reg.Fields, object.NewUUID()); err != nil {
		return users.New{}, err
	}
	if err := s.requireRegistrable(ctx, id, c.Token); err != nil {
		return users.New{}, err
	}
	if err := s.Users.InterceptRegistration(ctx, &reg); err != nil {
		return users.New{}, err
	}
	hash, err := s.Passwords.Hash(ctx, c.Password)
	if err != nil {
		return users.New{}, err
	}
	reg.Fields.Set(record.FieldPassword, hash)
	return reg, nil
}

// requireRegistrable reports Denied for a wrong token and Exists for an address that is taken. If addresses are
// validated first, only users.Create returns the latter, to clients with the token.
func (s *Flow) requireRegistrable(ctx context.Context, id record.Identity, token string) error {
	user, _, err := s.DB.FindOwner(record.AsService(ctx, ""), id)
	if err != nil {
		return err
	}
	if !s.Email.PostValidation {
		_, err := s.Post.Verify(ctx, id.ID, token, record.PurposeValidate)
		return err
	}
	if user.UUID != "" {
		return id.ErrTaken()
	}
	return nil
}

// consumeRegistrationToken consumes the token of a registration and reports
// whether that validates the address. With PostValidation there is no token.
func (s *Flow) consumeRegistrationToken(ctx context.Context, id record.Identity, token string,
	from sessions.Client) (validated bool, err error) {
	if s.Email.PostValidation {
		return false, nil
	}
	t, err := s.Post.Verify(ctx, id.ID, token, record.PurposeValidate)
	if err != nil {
		return false, err
	}
	if err := s.Post.Consume(ctx, t, record.ActRegistered, from); err != nil {
		return false, err
	}
	return true, nil
}

// requestRegistrationMail requests the mail with which a registration starts, or
// the one that informs the owner of a taken address. The client can't distinguish
// them.
func (s *Flow) requestRegistrationMail(ctx context.Context, id record.Identity) error {
	user, _, err := s.DB.FindOwner(record.AsService(ctx, ""), id)
	if err != nil {
		return err
	}
	if user.UUID != "" {
		return s.Post.Enqueue(ctx, id.ID, post.ValidationMailbox, record.PurposeTaken)
	}
	return s.Post.Enqueue(ctx, id.ID, post.ValidationMailbox, record.PurposeValidate)
}

// requestValidation requests the validation of an address that is already in use. The registration survives an error:
// the user can call ResendValidation.
func (s *Flow) requestValidation(ctx context.Context, id record.Identity) {
	if !s.Email.PostValidation || s.Email.SkipValidation {
		return
	}
	if err := s.Post.Enqueue(ctx, id.ID, post.ValidationMailbox, record.PurposeValidate); err != nil {
		s.Log.WarnContext(ctx, "auth: requesting a validation mail failed; the user can request another", "error", err)
	}
}
