package auth

import (
	"context"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// Credentials are what someone logs in or registers with.
type Credentials struct {
	Login    string // an e-mail address
	Password string
	Token    string        // of a validation mail
	Fields   object.Object // what else a registration form holds
}

// off reports that there is no login by e-mail.
func (s *Service) requireEmail() error {
	if s.email == nil {
		return errs.New(errs.NotFound, "login by e-mail is not configured")
	}
	return nil
}

// complete refuses credentials without a login or a password.
func (c Credentials) validate() error {
	var missing []errs.Field
	for _, f := range []struct{ name, value string }{{fieldLogin, c.Login}, {fieldPassword, c.Password}} {
		if f.value == "" {
			missing = append(missing, errs.Field{Pointer: "/" + f.name, Message: "is missing"})
		}
	}
	if missing == nil {
		return nil
	}
	return &errs.Error{Kind: errs.Invalid, Message: "a login and a password are needed", Fields: missing}
}

// Login logs in by address and password.
//
// Errors: Invalid without a login or a password; NotFound for a login that is
// unknown and Denied for a wrong password, or Denied for both where the
// configuration wants them alike; Limited; Unavailable.
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
	session, err := s.login(ctx, c, from)
	if err == nil {
		s.returnAttempt(from)
	}
	return session, err
}

func (s *Service) login(ctx context.Context, c Credentials, from Client) (IssuedSession, error) {
	ctx = asService(ctx, "")
	who := emailIdentity(c.Login)
	user, ident, err := s.findOwner(ctx, who)
	if err != nil {
		return IssuedSession{}, err
	}
	var known failures
	if ident.UUID != "" {
		o, err := ident.Object()
		if err != nil {
			return IssuedSession{}, err
		}
		known = failuresOf(o)
	}
	if err := s.accounts.try(who.uuid(), known); err != nil {
		return IssuedSession{}, err
	}
	right, err := s.verifyPassword(ctx, user, c.Password)
	if err != nil {
		s.accounts.undo(who.uuid())
		return IssuedSession{}, err
	}
	if !right {
		f := s.accounts.fail(who.uuid())
		if user.UUID != "" {
			s.runInBackground(ctx, "a failed login", func(ctx context.Context) error { return s.recordFailures(ctx, ident.UUID, f) })
		}
		return IssuedSession{}, s.loginError(user)
	}
	s.accounts.succeed(who.uuid())
	session, err := s.startSession(ctx, user, emailType, from)
	if err == nil {
		s.runInBackground(ctx, "a login", func(ctx context.Context) error { return s.recordUseIfPresent(ctx, ident.UUID, nil) })
	}
	return session, err
}

// wrong says why a login failed, as far as the configuration wants that told.
func (s *Service) loginError(user store.Stored) error {
	switch {
	case s.email.UniformErrors:
		return errs.New(errs.Denied, "the login or the password is wrong")
	case user.UUID == "":
		return errs.New(errs.NotFound, "there is no account with this login")
	default:
		return errs.New(errs.Denied, "the password is wrong")
	}
}

// wayOf is the way in of an address. A text that is none stands for nobody, as
// it is: its lower case could be an address.
func emailIdentity(login string) identity {
	address, err := NormalizeAddress(login)
	if err != nil {
		address = login
	}
	profile := object.Object{}
	profile.Set(emailType, address)
	return identity{providerID: address, provider: emailType, profile: profile}
}

// verify reports whether a user has this password. It takes as long for one
// who is not there. A hash that is weaker than it should be is replaced.
func (s *Service) verifyPassword(ctx context.Context, user store.Stored, password string) (bool, error) {
	if len(password) > MaxPassword {
		password = "" // no user has it, and none has the empty one
	}
	encoded, _ := object.Text(object.Field(user.Body, fieldPassword))
	right, weak, err := s.hasher.matches(ctx, encoded, password)
	if err != nil || !right || !weak {
		return right, err
	}
	s.runInBackground(asService(ctx, user.UUID), "a stronger hash", func(ctx context.Context) error {
		stronger, err := s.hasher.hash(ctx, password)
		if err != nil {
			return err
		}
		_, err = s.users.Mutate(ctx, user.UUID, func(now store.Stored) (store.Mutation, error) {
			if kept, _ := object.Text(object.Field(now.Body, fieldPassword)); kept != encoded {
				return store.Mutation{}, nil // changed meanwhile
			}
			fields := object.Object{}
			fields.Set(fieldPassword, stronger)
			return store.Mutation{Fields: fields}, nil
		})
		return ignoreNotFound(err)
	})
	return true, nil
}

// Register registers a user by address and password. Without a token, where
// addresses are validated first, it asks for the mail that brings one, and
// mailed is true. While someone is logged in the address becomes a further way
// in to their account, and no user is made.
//
// Errors: Invalid; Denied for a token that is not good, or a password that is
// not that of the account; Exists when the login is taken; Limited; TooLarge.
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
	if err := checkPassword(fieldPassword, c.Password); err != nil {
		return session, false, err
	}
	if err := s.takeAttempt(from); err != nil {
		return session, false, err
	}
	who := emailIdentity(c.Login)
	if !s.email.PostValidation && c.Token == "" {
		return session, true, s.requestRegistrationMail(ctx, who)
	}
	if from.Session != nil {
		session, err = s.linkAddress(ctx, who, c, from)
	} else {
		session, err = s.registerByEmail(ctx, who, c, from)
	}
	return session, false, err
}

// addUser makes a user and logs them in.
func (s *Service) registerByEmail(ctx context.Context, who identity, c Credentials, from Client) (IssuedSession, error) {
	reg, err := s.prepareRegistration(ctx, who, c)
	if err != nil {
		return IssuedSession{}, err
	}
	if err := s.consumeRegistrationToken(ctx, &reg.identity, c); err != nil {
		return IssuedSession{}, err
	}
	user, err := s.createUser(ctx, reg)
	if err != nil {
		return IssuedSession{}, err
	}
	s.requestValidation(ctx, who)
	return s.startSession(ctx, user, emailType, from)
}

// askAfterwards asks for the validation of an address that is in use already.
// What was registered is not undone because no mail can be asked for: there is
// Resend.
func (s *Service) requestValidation(ctx context.Context, who identity) {
	if !s.email.PostValidation || s.email.SkipValidation {
		return
	}
	if err := s.enqueueMail(ctx, who.providerID, validationMailbox, purposeValidate); err != nil {
		s.log.Warn("no validation mail could be asked for", "error", err)
	}
}

// invite asks for the mail that a registration begins with, or for the one
// that tells the owner of an address that there is an account already. From
// outside both look the same.
func (s *Service) requestRegistrationMail(ctx context.Context, who identity) error {
	user, _, err := s.findOwner(asService(ctx, ""), who)
	if err != nil {
		return err
	}
	if user.UUID != "" {
		return s.enqueueMail(ctx, who.providerID, validationMailbox, purposeTaken)
	}
	return s.enqueueMail(ctx, who.providerID, validationMailbox, purposeValidate)
}

// newcomer makes a user of a registration form. Everything that can be refused
// is refused here, before a token is used up.
func (s *Service) prepareRegistration(ctx context.Context, who identity, c Credentials) (registration, error) {
	reg := registration{identity: who, datas: object.Object{}}
	for name, value := range c.Fields {
		// A form's second field for the password is no business of anyone.
		if text, ok := object.Text(value); !ok || text != c.Password {
			reg.datas[name] = value
		}
	}
	reg.fields = s.users.SettableByAnonymous(reg.datas)
	reg.datas.Set(fieldLogin, who.providerID)
	reg.fields.Set(fieldPassword, s.hasher.dummy) // as long as the hash that it stands for
	if err := s.users.Check(asService(ctx, ""), reg.fields, object.NewUUID()); err != nil {
		return reg, err
	}
	user, _, err := s.findOwner(asService(ctx, ""), who)
	if err == nil && user.UUID != "" && (s.email.PostValidation || c.Token == "") {
		err = who.alreadyRegistered()
	}
	if err == nil && !s.email.PostValidation {
		_, err = s.verifyToken(ctx, who.providerID, c.Token, purposeValidate)
	}
	if err == nil {
		err = s.interceptRegistration(ctx, &reg)
	}
	if err != nil {
		return reg, err
	}
	hash, err := s.hasher.hash(ctx, c.Password)
	if err == nil {
		reg.fields.Set(fieldPassword, hash)
	}
	return reg, err
}

// redeem uses up the token of a registration, if there has to be one, and with
// that the way in is validated.
func (s *Service) consumeRegistrationToken(ctx context.Context, who *identity, c Credentials) error {
	if s.email.PostValidation {
		return nil
	}
	p, err := s.verifyToken(ctx, who.providerID, c.Token, purposeValidate)
	if err == nil {
		err = s.consumeToken(ctx, p)
	}
	who.validated = err == nil
	return err
}

// addAddress links an address to the user who is logged in. Whoever has a
// password shows it: a session that someone else got hold of must not become
// a way in that stays.
func (s *Service) linkAddress(ctx context.Context, who identity, c Credentials, from Client) (IssuedSession, error) {
	me := from.Session
	current, _ := object.Text(object.Field(me.User.Body, fieldPassword))
	fields := object.Object{}
	if current == "" {
		hash, err := s.hasher.hash(ctx, c.Password)
		if err != nil {
			return IssuedSession{}, err
		}
		fields.Set(fieldPassword, hash)
	} else if right, err := s.verifyCurrentPassword(ctx, me, c.Password); err != nil || !right {
		return IssuedSession{}, wrongPassword(err)
	}
	if !s.email.PostValidation {
		// Only who has the token is told whether the address is taken.
		if _, err := s.verifyToken(ctx, who.providerID, c.Token, purposeValidate); err != nil {
			return IssuedSession{}, err
		}
	}
	if owner, _, err := s.findOwner(asService(ctx, ""), who); err != nil || owner.UUID != "" && owner.UUID != me.User.UUID {
		if err == nil {
			err = who.alreadyRegistered()
		}
		return IssuedSession{}, err
	}
	if err := s.consumeRegistrationToken(ctx, &who, c); err != nil {
		return IssuedSession{}, err
	}
	if err := s.linkIdent(ctx, who, me); err != nil {
		return IssuedSession{}, err
	}
	user, err := s.updateCurrentUser(ctx, me, func(object.Object) object.Object { return fields })
	if err != nil {
		return IssuedSession{}, err
	}
	s.requestValidation(ctx, who)
	return s.startSession(ctx, user, emailType, from)
}

func wrongPassword(err error) error {
	if err != nil {
		return err
	}
	return errs.New(errs.Denied, "the password is not that of your account")
}

// myPassword verifies the password of who is logged in, with the limits of a
// login.
func (s *Service) verifyCurrentPassword(ctx context.Context, me *Session, password string) (bool, error) {
	key := "user:" + me.User.UUID
	if err := s.accounts.try(key, failures{}); err != nil {
		return false, err
	}
	right, err := s.verifyPassword(ctx, me.User, password)
	switch {
	case err != nil:
		s.accounts.undo(key)
	case right:
		s.accounts.succeed(key)
	default:
		s.accounts.fail(key)
	}
	return right, err
}
