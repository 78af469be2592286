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
func (s *Service) off() error {
	if s.email == nil {
		return errs.New(errs.NotFound, "login by e-mail is not configured")
	}
	return nil
}

// complete refuses credentials without a login or a password.
func (c Credentials) complete() error {
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
	if err := s.off(); err != nil {
		return IssuedSession{}, err
	}
	if err := c.complete(); err != nil {
		return IssuedSession{}, err
	}
	if err := s.limiter.spend(from.Address); err != nil {
		return IssuedSession{}, err
	}
	in, err := s.login(ctx, c, from)
	if err == nil {
		s.limiter.refund(from.Address)
	}
	return in, err
}

func (s *Service) login(ctx context.Context, c Credentials, from Client) (IssuedSession, error) {
	ctx = own(ctx, "")
	w := wayOf(c.Login)
	user, ident, err := s.owner(ctx, w)
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
	if err := s.limiter.try(w.uuid(), known); err != nil {
		return IssuedSession{}, err
	}
	right, err := s.verify(ctx, user, c.Password)
	if err != nil {
		s.limiter.undo(w.uuid())
		return IssuedSession{}, err
	}
	if !right {
		f := s.limiter.failed(w.uuid())
		if user.UUID != "" {
			s.later(ctx, "a failed login", func(ctx context.Context) error { return s.failed(ctx, ident.UUID, f) })
		}
		return IssuedSession{}, s.wrong(user)
	}
	s.limiter.succeed(w.uuid())
	in, err := s.issue(ctx, user, emailType, from)
	if err == nil {
		s.later(ctx, "a login", func(ctx context.Context) error { return s.used(ctx, ident.UUID, nil) })
	}
	return in, err
}

// wrong says why a login failed, as far as the configuration wants that told.
func (s *Service) wrong(user store.Stored) error {
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
func wayOf(login string) way {
	address, err := NormalizeAddress(login)
	if err != nil {
		address = login
	}
	profile := object.Object{}
	profile.Set(emailType, address)
	return way{id: address, kind: emailType, profile: profile}
}

// verify reports whether a user has this password. It takes as long for one
// who is not there. A hash that is weaker than it should be is replaced.
func (s *Service) verify(ctx context.Context, user store.Stored, password string) (bool, error) {
	if len(password) > MaxPassword {
		password = "" // no user has it, and none has the empty one
	}
	encoded, _ := object.Text(object.Field(user.Body, fieldPassword))
	right, weak, err := s.hasher.matches(ctx, encoded, password)
	if err != nil || !right || !weak {
		return right, err
	}
	s.later(own(ctx, user.UUID), "a stronger hash", func(ctx context.Context) error {
		stronger, err := s.hasher.hash(ctx, password)
		if err != nil {
			return err
		}
		_, err = s.users.Revise(ctx, user.UUID, func(now store.Stored) (store.Revision, error) {
			if kept, _ := object.Text(object.Field(now.Body, fieldPassword)); kept != encoded {
				return store.Revision{}, nil // changed meanwhile
			}
			fields := object.Object{}
			fields.Set(fieldPassword, stronger)
			return store.Revision{Fields: fields}, nil
		})
		return unlessMissing(err)
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
func (s *Service) Register(ctx context.Context, c Credentials, from Client) (in IssuedSession, mailed bool, err error) {
	if err := s.off(); err != nil {
		return in, false, err
	}
	if err := c.complete(); err != nil {
		return in, false, err
	}
	if _, err := NormalizeAddress(c.Login); err != nil {
		return in, false, err
	}
	if err := checkPassword(fieldPassword, c.Password); err != nil {
		return in, false, err
	}
	if err := s.limiter.spend(from.Address); err != nil {
		return in, false, err
	}
	w := wayOf(c.Login)
	if !s.email.PostValidation && c.Token == "" {
		return in, true, s.invite(ctx, w)
	}
	if from.Session != nil {
		in, err = s.addAddress(ctx, w, c, from)
	} else {
		in, err = s.addUser(ctx, w, c, from)
	}
	return in, false, err
}

// addUser makes a user and logs them in.
func (s *Service) addUser(ctx context.Context, w way, c Credentials, from Client) (IssuedSession, error) {
	n, err := s.newcomer(ctx, w, c)
	if err != nil {
		return IssuedSession{}, err
	}
	if err := s.redeem(ctx, &n.way, c); err != nil {
		return IssuedSession{}, err
	}
	user, err := s.register(ctx, n)
	if err != nil {
		return IssuedSession{}, err
	}
	s.askAfterwards(ctx, w)
	return s.issue(ctx, user, emailType, from)
}

// askAfterwards asks for the validation of an address that is in use already.
// What was registered is not undone because no mail can be asked for: there is
// Resend.
func (s *Service) askAfterwards(ctx context.Context, w way) {
	if !s.email.PostValidation || s.email.SkipValidation {
		return
	}
	if err := s.ask(ctx, w.id, validations, validate); err != nil {
		s.log.Warn("no validation mail could be asked for", "error", err)
	}
}

// invite asks for the mail that a registration begins with, or for the one
// that tells the owner of an address that there is an account already. From
// outside both look the same.
func (s *Service) invite(ctx context.Context, w way) error {
	user, _, err := s.owner(own(ctx, ""), w)
	if err != nil {
		return err
	}
	if user.UUID != "" {
		return s.ask(ctx, w.id, validations, taken)
	}
	return s.ask(ctx, w.id, validations, validate)
}

// newcomer makes a user of a registration form. Everything that can be refused
// is refused here, before a token is used up.
func (s *Service) newcomer(ctx context.Context, w way, c Credentials) (newcomer, error) {
	n := newcomer{way: w, datas: object.Object{}}
	for name, value := range c.Fields {
		// A form's second field for the password is no business of anyone.
		if text, ok := object.Text(value); !ok || text != c.Password {
			n.datas[name] = value
		}
	}
	n.fields = s.users.Settable(n.datas)
	n.datas.Set(fieldLogin, w.id)
	n.fields.Set(fieldPassword, s.hasher.dummy) // as long as the hash that it stands for
	if err := s.users.Check(own(ctx, ""), n.fields, object.NewUUID()); err != nil {
		return n, err
	}
	user, _, err := s.owner(own(ctx, ""), w)
	if err == nil && user.UUID != "" && (s.email.PostValidation || c.Token == "") {
		err = w.taken()
	}
	if err == nil && !s.email.PostValidation {
		_, err = s.prove(ctx, w.id, c.Token, validate)
	}
	if err == nil {
		err = s.screen(ctx, &n)
	}
	if err != nil {
		return n, err
	}
	hash, err := s.hasher.hash(ctx, c.Password)
	if err == nil {
		n.fields.Set(fieldPassword, hash)
	}
	return n, err
}

// redeem uses up the token of a registration, if there has to be one, and with
// that the way in is validated.
func (s *Service) redeem(ctx context.Context, w *way, c Credentials) error {
	if s.email.PostValidation {
		return nil
	}
	p, err := s.prove(ctx, w.id, c.Token, validate)
	if err == nil {
		err = s.spend(ctx, p)
	}
	w.validated = err == nil
	return err
}

// addAddress links an address to the user who is logged in. Whoever has a
// password shows it: a session that someone else got hold of must not become
// a way in that stays.
func (s *Service) addAddress(ctx context.Context, w way, c Credentials, from Client) (IssuedSession, error) {
	me := from.Session
	current, _ := object.Text(object.Field(me.User.Body, fieldPassword))
	fields := object.Object{}
	if current == "" {
		hash, err := s.hasher.hash(ctx, c.Password)
		if err != nil {
			return IssuedSession{}, err
		}
		fields.Set(fieldPassword, hash)
	} else if right, err := s.myPassword(ctx, me, c.Password); err != nil || !right {
		return IssuedSession{}, orDenied(err)
	}
	if !s.email.PostValidation {
		// Only who has the token is told whether the address is taken.
		if _, err := s.prove(ctx, w.id, c.Token, validate); err != nil {
			return IssuedSession{}, err
		}
	}
	if owner, _, err := s.owner(own(ctx, ""), w); err != nil || owner.UUID != "" && owner.UUID != me.User.UUID {
		if err == nil {
			err = w.taken()
		}
		return IssuedSession{}, err
	}
	if err := s.redeem(ctx, &w, c); err != nil {
		return IssuedSession{}, err
	}
	if err := s.link(ctx, w, me); err != nil {
		return IssuedSession{}, err
	}
	user, err := s.reviseMe(ctx, me, func(object.Object) object.Object { return fields })
	if err != nil {
		return IssuedSession{}, err
	}
	s.askAfterwards(ctx, w)
	return s.issue(ctx, user, emailType, from)
}

func orDenied(err error) error {
	if err != nil {
		return err
	}
	return errs.New(errs.Denied, "the password is not that of your account")
}

// myPassword verifies the password of who is logged in, with the limits of a
// login.
func (s *Service) myPassword(ctx context.Context, me *Session, password string) (bool, error) {
	key := "user:" + me.User.UUID
	if err := s.limiter.try(key, failures{}); err != nil {
		return false, err
	}
	right, err := s.verify(ctx, me.User, password)
	switch {
	case err != nil:
		s.limiter.undo(key)
	case right:
		s.limiter.succeed(key)
	default:
		s.limiter.failed(key)
	}
	return right, err
}
