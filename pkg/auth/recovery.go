package auth

import (
	"context"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// Resend asks for another validation mail. It looks the same for a login that
// is unknown or validated already. Where addresses are validated first it asks
// for the mail that a registration does.
func (s *Service) ResendValidation(ctx context.Context, login string, from Client) error {
	return s.request(ctx, login, validations, from, func(user store.Stored, ident object.Object) purpose {
		switch {
		case !s.email.PostValidation && user.UUID == "":
			return validate
		case !s.email.PostValidation:
			return taken
		case user.UUID == "" || string(ident["validated"]) == "true" || s.email.SkipValidation:
			return nothing
		default:
			return validate
		}
	})
}

// Forgot asks for the mail that lets a new password be set. It looks the same
// for a login that is unknown.
func (s *Service) RequestRecovery(ctx context.Context, login string, from Client) error {
	return s.request(ctx, login, recoveries, from, func(user store.Stored, _ object.Object) purpose {
		if user.UUID == "" {
			return nothing
		}
		return recovery
	})
}

func (s *Service) request(ctx context.Context, login, kind string, from Client, why func(user store.Stored, ident object.Object) purpose) error {
	if err := s.off(); err != nil {
		return err
	}
	if login == "" {
		return &errs.Error{Kind: errs.Invalid, Message: "a login is needed",
			Fields: []errs.Field{{Pointer: "/login", Message: "is missing"}}}
	}
	if _, err := NormalizeAddress(login); err != nil {
		return err
	}
	if err := s.limiter.spend(from.Address); err != nil {
		return err
	}
	w := wayOf(login)
	user, stored, err := s.owner(own(ctx, ""), w)
	if err != nil {
		return err
	}
	var ident object.Object
	if stored.UUID != "" {
		if ident, err = stored.Object(); err != nil {
			return err
		}
	}
	return s.ask(ctx, w.id, kind, why(user, ident))
}

// Recover sets a new password by the token of a recovery mail, and ends all
// sessions of the user.
//
// Whoever registers somebody else's address, where addresses are validated
// afterwards, must not keep a way into the account of its owner: while nobody
// has proven to have both the address and the account, every other way in is
// removed. And whoever adds an address to their account by a slip must not lose
// the account to its owner: who proves it first gets an account of their own.
func (s *Service) Recover(ctx context.Context, c Credentials, from Client) error {
	if err := s.off(); err != nil {
		return err
	}
	if err := c.complete(); err != nil {
		return err
	}
	if err := checkPassword(fieldPassword, c.Password); err != nil {
		return err
	}
	if err := s.limiter.spend(from.Address); err != nil {
		return err
	}
	w := wayOf(c.Login)
	p, err := s.prove(ctx, w.id, c.Token, recovery)
	if err != nil {
		return err
	}
	user, stored, err := s.owner(own(ctx, ""), w)
	if err != nil {
		return err
	}
	if user.UUID == "" {
		return wrongToken()
	}
	ident, err := stored.Object()
	if err != nil {
		return err
	}
	hash, err := s.hasher.hash(ctx, c.Password)
	if err != nil {
		return err
	}
	if err := s.spend(ctx, p); err != nil {
		return err
	}
	proven := string(ident[fieldProven]) == "true"
	if !proven {
		if part, err := s.parts(ctx, user, stored.UUID, ident); err != nil || part {
			if err == nil {
				err = s.part(ctx, w, user, stored.UUID, hash)
			}
			return err
		}
		if err := s.evict(ctx, user, stored.UUID); err != nil {
			return err
		}
	}
	if _, err := s.setPassword(ctx, user, hash); err != nil {
		return err
	}
	if !proven {
		// Until its session ended a stranger could link another way in.
		if err := s.evict(ctx, user, stored.UUID); err != nil {
			return err
		}
	}
	s.limiter.succeed(w.uuid())
	return s.validated(ctx, stored.UUID, true)
}

// parts reports whether an address was added to an account that has another way
// in.
func (s *Service) parts(ctx context.Context, user store.Stored, uuid string, ident object.Object) (other bool, err error) {
	if string(ident[fieldAdded]) != "true" {
		return false, nil
	}
	err = linked(own(ctx, ""), s.idents, user.UUID, func(found store.Stored, _ object.Object) error {
		other = other || found.UUID != uuid
		return nil
	})
	return other, err
}

// part takes an address out of an account and makes it one of its own. Should
// that fail, the address is free to be registered.
func (s *Service) part(ctx context.Context, w way, user store.Stored, ident, hash string) error {
	if err := s.Unlink(ctx, &Session{User: user}, ident); err != nil {
		return err
	}
	w.validated = true
	n := newcomer{way: w, fields: object.Object{}, datas: object.Object{}}
	n.fields.Set(fieldPassword, hash)
	n.datas.Set(fieldLogin, w.id)
	if _, err := s.register(ctx, n); err != nil {
		return err
	}
	s.limiter.succeed(w.uuid())
	return nil
}

// setPassword sets a hash and, in the same act, ends all sessions.
func (s *Service) setPassword(ctx context.Context, user store.Stored, hash string) (store.Stored, error) {
	return s.users.Revise(own(ctx, user.UUID), user.UUID, func(now store.Stored) (store.Revision, error) {
		o, err := now.Object()
		if err != nil {
			return store.Revision{}, err
		}
		return store.Revision{Fields: newPassword(o, hash)}, nil
	})
}

// newPassword is what changes in a user with the password.
func newPassword(user object.Object, hash string) object.Object {
	fields := object.Object{}
	fields.Set(fieldPassword, hash)
	fields.Set(fieldEpoch, epoch(user)+1)
	return fields
}

// validated notes that an ident's address has been proven, maybe by whom the
// account belongs to, and forgets its failed logins.
func (s *Service) validated(ctx context.Context, ident string, proven bool) error {
	fields := object.Object{"validated": []byte("true"), fieldFailures: failures{At: s.now()}.encode()}
	if proven {
		fields[fieldProven] = []byte("true")
	}
	_, err := s.idents.Revise(own(ctx, ""), ident, func(store.Stored) (store.Revision, error) {
		return store.Revision{Fields: fields}, nil
	})
	return unlessMissing(err)
}

// evict removes every way in of a user but one.
func (s *Service) evict(ctx context.Context, user store.Stored, keep string) error {
	ctx = own(ctx, user.UUID)
	var going unlinked
	_, err := s.users.Revise(ctx, user.UUID, func(store.Stored) (store.Revision, error) {
		going = unlinked{}
		err := linked(ctx, s.idents, user.UUID, func(ident store.Stored, _ object.Object) error {
			if ident.UUID != keep {
				going[ident.UUID] = ident.Revision
			}
			return nil
		})
		if len(going) == 0 || err != nil {
			return store.Revision{}, err
		}
		fields := object.Object{}
		fields.Set(fieldUnlinked, going)
		return store.Revision{Fields: fields}, nil
	})
	for ident := range going {
		if err == nil {
			err = unlessMissing(s.idents.Delete(ctx, ident, 0))
		}
	}
	return err
}

// Landing is where the link of a mail leads.
type LinkOutcome int

// Landings.
const (
	OpenRegistration LinkOutcome = iota // the form that registers, with the token
	OpenRecovery                        // the form that sets a new password, with the token
	AddressValidated                    // the address is validated: nothing is left to do
)

// Follow is the visit of a mail's link. A token that a form is to be sent with
// stays good. Denied when the token is not.
//
// Links are followed by programs that look at mails, too, and by people who
// never registered: only who is logged in proves that the account is theirs.
func (s *Service) FollowLink(ctx context.Context, login, token string, from Client) (LinkOutcome, error) {
	if err := s.off(); err != nil {
		return 0, err
	}
	w := wayOf(login)
	p, err := s.prove(ctx, w.id, token, validate, recovery)
	if err != nil {
		return 0, err
	}
	switch {
	case p.issued.For == recovery:
		return OpenRecovery, nil
	case !s.email.PostValidation:
		return OpenRegistration, nil
	}
	user, ident, err := s.owner(own(ctx, ""), w)
	if err != nil {
		return 0, err
	}
	if user.UUID == "" {
		return 0, wrongToken()
	}
	if err := s.spend(ctx, p); err != nil {
		return 0, err
	}
	return AddressValidated, s.validated(ctx, ident.UUID, from.Session != nil && from.Session.User.UUID == user.UUID)
}

// ChangePassword sets a new password for the user who is logged in, ends all
// sessions, and begins a new one. Whoever has a password shows it.
func (s *Service) ChangePassword(ctx context.Context, current, next string, from Client) (IssuedSession, error) {
	if err := checkPassword("newPassword", next); err != nil {
		return IssuedSession{}, err
	}
	if err := s.limiter.spend(from.Address); err != nil {
		return IssuedSession{}, err
	}
	me := from.Session
	if kept, _ := object.Text(object.Field(me.User.Body, fieldPassword)); kept != "" {
		if right, err := s.myPassword(ctx, me, current); err != nil || !right {
			return IssuedSession{}, orDenied(err)
		}
	}
	hash, err := s.hasher.hash(ctx, next)
	if err != nil {
		return IssuedSession{}, err
	}
	if err := s.alive(own(ctx, me.User.UUID), me); err != nil {
		return IssuedSession{}, err
	}
	user, err := s.reviseMe(ctx, me, func(now object.Object) object.Object { return newPassword(now, hash) })
	if err != nil {
		return IssuedSession{}, err
	}
	return s.issue(ctx, user, emailType, from)
}
