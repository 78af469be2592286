package account

import (
	"context"
	"errors"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// registration is a user about to be created.
type registration struct {
	identity
	fields object.Object // of the user, as they will be stored
	datas  object.Object // of the event Register
}

// Register registers a user by address and password. Where addresses are
// validated first and there is no token, it requests the mail that brings one,
// and mailed is true. While somebody is logged in, the address is added to their
// account and no user is created.
//
// Errors: Invalid; Denied for a wrong token, with a Repetition for one that was used, or a password that is not that of
// the account; Exists when the login is taken; Limited; TooLarge.
func (s *Service) Register(ctx context.Context, c Credentials, from Client) (session IssuedSession, mailed bool, err error) {
	if err := s.requireEmail(); err != nil {
		return session, false, err
	}
	if err := c.validate(); err != nil {
		return session, false, err
	}
	if _, err := NormalizeAddress(c.Login); err != nil {
		return session, false, err
	}
	if err := checkLength(record.FieldPassword, c.Password); err != nil {
		return session, false, err
	}
	if err := s.guesses.Take(from.Address); err != nil {
		return session, false, err
	}
	// Who adds an address to an account with a password gives that one.
	if !hasPassword(from.Session) {
		own := c.own()
		if from.Session != nil {
			known, err := s.ownOf(ctx, from.Session.User)
			if err != nil {
				return session, false, err
			}
			own = append(own, known...)
		}
		if err := s.checkNew(ctx, record.FieldPassword, c.Password, own); err != nil {
			return session, false, err
		}
	}
	id := record.AddressIdentity(c.Login)
	if !s.email.PostValidation && c.Token == "" {
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
	if Repeated(err) != nil {
		err = s.repeatedForm(ctx, id, c.Password, err, taken, from)
	}
	return session, false, err
}

// repeatedForm returns the error of a form with a password that was sent before. It was another form if the password was: whoever
// has chosen another one by then learns that it was not set. Where the act has not succeeded after all, the token is of no use. taken is
// the error of a form without a token that is another one.
//
// The reply to the browser of the first use says whether the password is that of the account. So another one is a guess: whoever finds
// the form in the history of a browser has no more of them than at a login.
func (s *Service) repeatedForm(ctx context.Context, id record.Identity, password string, repeated, taken error, from Client) error {
	ctx = record.AsService(ctx, "")
	r := Repeated(recognize(repeated, from))
	user, ident, err := s.db.FindOwner(ctx, id)
	if err != nil {
		return err
	}
	r.Known = r.Known && s.guesses.Accounts.Try(id.UUID(), ident.Failures) == nil
	done, before := false, ""
	same, err := s.await(ctx, r.at, func() (bool, bool, error) {
		user, ident, err = s.db.FindOwner(ctx, id)
		if done = user.UUID != "" && !r.token.Recovers(user); err != nil || !done || !r.Known {
			return done, false, err
		}
		if user.Password == before {
			return false, false, nil
		}
		before = user.Password
		right, err := s.verifyPassword(ctx, user, password)
		return right, false, err
	})
	guessed := r.Known && before != "" && !same && err == nil
	if guessed {
		s.failed(ctx, id, user, ident, record.ReasonPassword)
	} else if r.Known {
		s.guesses.Accounts.Undo(id.UUID())
	}
	r.Known = r.Known && same
	switch {
	case err != nil:
		return err
	case taken != nil && !r.Known:
		return taken
	case !done:
		return errWrongToken()
	case !guessed:
		s.guesses.Return(from.Address)
	}
	return repeated
}

// registerByEmail creates a user and logs them in.
func (s *Service) registerByEmail(ctx context.Context, id record.Identity, c Credentials, from Client) (IssuedSession, error) {
	reg, err := s.prepareRegistration(ctx, id, c)
	if err != nil {
		return IssuedSession{}, err
	}
	if reg.Validated, err = s.consumeRegistrationToken(ctx, id, c.Token, from); err != nil {
		return IssuedSession{}, err
	}
	ended, err := s.beginRegistration(ctx, id, c.Token, from)
	if err != nil {
		return IssuedSession{}, err
	}
	user, err := s.createUser(ctx, reg)
	if ended(err == nil); err != nil {
		return IssuedSession{}, err
	}
	s.requestValidation(ctx, id)
	return s.completeLogin(ctx, user, s.proofBy(record.Email, record.MethodPassword, 1), from)
}

// prepareRegistration makes a user of a registration form. Everything that can
// be refused is refused here, before the token is consumed.
func (s *Service) prepareRegistration(ctx context.Context, id record.Identity, c Credentials) (registration, error) {
	reg := registration{identity: identity{Identity: id}, datas: object.Object{}}
	for name, value := range c.Fields {
		// A form may repeat the password in a field of any name.
		if text, ok := object.Text(value); !ok || passwordForm(text) != passwordForm(c.Password) {
			reg.datas[name] = value
		}
	}
	var err error
	if reg.fields, err = s.db.Users.SettableByAnonymous(ctx, reg.datas); err != nil {
		return registration{}, err
	}
	reg.datas.Set("login", id.ID)
	reg.fields.Set(record.FieldPassword, s.dummyHash()) // has the length of a hash
	if err := s.db.Users.Check(record.AsService(ctx, ""), reg.fields, object.NewUUID()); err != nil {
		return registration{}, err
	}
	if err := s.requireRegistrable(ctx, id, c.Token); err != nil {
		return registration{}, err
	}
	if err := s.interceptRegistration(ctx, &reg); err != nil {
		return registration{}, err
	}
	hash, err := s.hashPassword(ctx, c.Password)
	if err != nil {
		return registration{}, err
	}
	reg.fields.Set(record.FieldPassword, hash)
	return reg, nil
}

// requireRegistrable reports Denied for a wrong token and Exists for an address
// that is taken. Where addresses are validated first only createUser reports
// the latter, to those who have the token.
func (s *Service) requireRegistrable(ctx context.Context, id record.Identity, token string) error {
	user, _, err := s.db.FindOwner(record.AsService(ctx, ""), id)
	if err != nil {
		return err
	}
	if !s.email.PostValidation {
		_, err := s.verifyToken(ctx, id.ID, token, record.PurposeValidate)
		return err
	}
	if user.UUID != "" {
		return id.ErrTaken()
	}
	return nil
}

// consumeRegistrationToken consumes the token of a registration and reports
// whether that validates the address. With PostValidation there is no token.
func (s *Service) consumeRegistrationToken(ctx context.Context, id record.Identity, token string, from Client) (validated bool, err error) {
	if s.email.PostValidation {
		return false, nil
	}
	t, err := s.verifyToken(ctx, id.ID, token, record.PurposeValidate)
	if err != nil {
		return false, err
	}
	if err := s.consumeToken(ctx, t, ActRegistered, from); err != nil {
		return false, err
	}
	return true, nil
}

// interceptRegistration calls the interceptor with a user before any record of
// them is written. It may refuse the user and may add fields.
func (s *Service) interceptRegistration(ctx context.Context, reg *registration) error {
	if s.interceptor == nil {
		return nil
	}
	asked := reg.fields.Clone()
	delete(asked, record.FieldPassword)
	patch, err := s.interceptor.Intercept(ctx, store.InterceptRequest{
		Op: "register", Store: s.db.Users.Name(), Object: asked.Encode(), Datas: reg.datas.Encode(), Call: store.CallOf(ctx),
	})
	if err != nil || len(patch) == 0 {
		return err
	}
	if reg.fields, err = object.MergePatch(reg.fields, s.db.Users.SettableByInterceptor(patch)); err != nil {
		return err
	}
	return s.db.Users.Check(record.AsService(ctx, ""), reg.fields, object.NewUUID())
}

// requestRegistrationMail requests the mail with which a registration starts, or
// the one that informs the owner of a taken address. The client can't distinguish
// them.
func (s *Service) requestRegistrationMail(ctx context.Context, id record.Identity) error {
	user, _, err := s.db.FindOwner(record.AsService(ctx, ""), id)
	if err != nil {
		return err
	}
	if user.UUID != "" {
		return s.enqueueMail(ctx, id.ID, validationMailbox, record.PurposeTaken)
	}
	return s.enqueueMail(ctx, id.ID, validationMailbox, record.PurposeValidate)
}

// requestValidation requests the validation of an address that is in use
// already. An error does not undo the registration: there is ResendValidation.
func (s *Service) requestValidation(ctx context.Context, id record.Identity) {
	if !s.email.PostValidation || s.email.SkipValidation {
		return
	}
	if err := s.enqueueMail(ctx, id.ID, validationMailbox, record.PurposeValidate); err != nil {
		s.log.WarnContext(ctx, "auth: requesting a validation mail failed; the user can request another", "error", err)
	}
}
