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
	return s.requestMail(ctx, login, validationMailbox, from, func(user store.Stored, ident object.Object) purpose {
		switch {
		case !s.email.PostValidation && user.UUID == "":
			return purposeValidate
		case !s.email.PostValidation:
			return purposeTaken
		case user.UUID == "" || string(ident["validated"]) == "true" || s.email.SkipValidation:
			return purposeNone
		default:
			return purposeValidate
		}
	})
}

// Forgot asks for the mail that lets a new password be set. It looks the same
// for a login that is unknown.
func (s *Service) RequestRecovery(ctx context.Context, login string, from Client) error {
	return s.requestMail(ctx, login, recoveryMailbox, from, func(user store.Stored, _ object.Object) purpose {
		if user.UUID == "" {
			return purposeNone
		}
		return purposeRecover
	})
}

func (s *Service) requestMail(ctx context.Context, login, kind string, from Client, why func(user store.Stored, ident object.Object) purpose) error {
	if err := s.requireEmail(); err != nil {
		return err
	}
	if login == "" {
		return &errs.Error{Kind: errs.Invalid, Message: "a login is needed",
			Fields: []errs.Field{{Pointer: "/login", Message: "is missing"}}}
	}
	if _, err := NormalizeAddress(login); err != nil {
		return err
	}
	if err := s.takeAttempt(from); err != nil {
		return err
	}
	who := emailIdentity(login)
	user, stored, err := s.findOwner(asService(ctx, ""), who)
	if err != nil {
		return err
	}
	var ident object.Object
	if stored.UUID != "" {
		if ident, err = stored.Object(); err != nil {
			return err
		}
	}
	return s.enqueueMail(ctx, who.providerID, kind, why(user, ident))
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
	if err := s.requireEmail(); err != nil {
		return err
	}
	if err := c.validate(); err != nil {
		return err
	}
	if err := checkPassword(fieldPassword, c.Password); err != nil {
		return err
	}
	if err := s.takeAttempt(from); err != nil {
		return err
	}
	who := emailIdentity(c.Login)
	p, err := s.verifyToken(ctx, who.providerID, c.Token, purposeRecover)
	if err != nil {
		return err
	}
	user, stored, err := s.findOwner(asService(ctx, ""), who)
	if err != nil {
		return err
	}
	if user.UUID == "" {
		return errWrongToken()
	}
	ident, err := stored.Object()
	if err != nil {
		return err
	}
	hash, err := s.hasher.hash(ctx, c.Password)
	if err != nil {
		return err
	}
	if err := s.consumeToken(ctx, p); err != nil {
		return err
	}
	proven := string(ident[fieldProven]) == "true"
	if !proven {
		if part, err := s.wasAddedToAccount(ctx, user, stored.UUID, ident); err != nil || part {
			if err == nil {
				err = s.moveToOwnAccount(ctx, who, user, stored.UUID, hash)
			}
			return err
		}
		if err := s.removeOtherIdents(ctx, user, stored.UUID); err != nil {
			return err
		}
	}
	if _, err := s.setPassword(ctx, user, hash); err != nil {
		return err
	}
	if !proven {
		// Until its session ended a stranger could link another way in.
		if err := s.removeOtherIdents(ctx, user, stored.UUID); err != nil {
			return err
		}
	}
	s.accounts.succeed(who.uuid())
	return s.markValidated(ctx, stored.UUID, true)
}

// parts reports whether an address was added to an account that has another way
// in.
func (s *Service) wasAddedToAccount(ctx context.Context, user store.Stored, uuid string, ident object.Object) (other bool, err error) {
	if string(ident[fieldAdded]) != "true" {
		return false, nil
	}
	err = forEachOwned(asService(ctx, ""), s.idents, user.UUID, func(found store.Stored, _ object.Object) error {
		other = other || found.UUID != uuid
		return nil
	})
	return other, err
}

// part takes an address out of an account and makes it one of its own. Should
// that fail, the address is free to be registered.
func (s *Service) moveToOwnAccount(ctx context.Context, who identity, user store.Stored, ident, hash string) error {
	if err := s.Unlink(ctx, &Session{User: user}, ident); err != nil {
		return err
	}
	who.validated = true
	reg := registration{identity: who, fields: object.Object{}, datas: object.Object{}}
	reg.fields.Set(fieldPassword, hash)
	reg.datas.Set(fieldLogin, who.providerID)
	if _, err := s.createUser(ctx, reg); err != nil {
		return err
	}
	s.accounts.succeed(who.uuid())
	return nil
}

// setPassword sets a hash and, in the same act, ends all sessions.
func (s *Service) setPassword(ctx context.Context, user store.Stored, hash string) (store.Stored, error) {
	return s.users.Mutate(asService(ctx, user.UUID), user.UUID, func(now store.Stored) (store.Mutation, error) {
		o, err := now.Object()
		if err != nil {
			return store.Mutation{}, err
		}
		return store.Mutation{Fields: passwordFields(o, hash)}, nil
	})
}

// newPassword is what changes in a user with the password.
func passwordFields(user object.Object, hash string) object.Object {
	fields := object.Object{}
	fields.Set(fieldPassword, hash)
	fields.Set(fieldEpoch, epoch(user)+1)
	return fields
}

// validated notes that an ident's address has been proven, maybe by whom the
// account belongs to, and forgets its failed logins.
func (s *Service) markValidated(ctx context.Context, ident string, proven bool) error {
	fields := object.Object{"validated": []byte("true"), fieldFailures: failures{At: s.now()}.encode()}
	if proven {
		fields[fieldProven] = []byte("true")
	}
	_, err := s.idents.Mutate(asService(ctx, ""), ident, func(store.Stored) (store.Mutation, error) {
		return store.Mutation{Fields: fields}, nil
	})
	return ignoreNotFound(err)
}

// evict removes every way in of a user but one.
func (s *Service) removeOtherIdents(ctx context.Context, user store.Stored, keep string) error {
	ctx = asService(ctx, user.UUID)
	var unlinked unlinkedIdents
	_, err := s.users.Mutate(ctx, user.UUID, func(store.Stored) (store.Mutation, error) {
		unlinked = unlinkedIdents{}
		err := forEachOwned(ctx, s.idents, user.UUID, func(ident store.Stored, _ object.Object) error {
			if ident.UUID != keep {
				unlinked[ident.UUID] = ident.Revision
			}
			return nil
		})
		if len(unlinked) == 0 || err != nil {
			return store.Mutation{}, err
		}
		fields := object.Object{}
		fields.Set(fieldUnlinked, unlinked)
		return store.Mutation{Fields: fields}, nil
	})
	for ident := range unlinked {
		if err == nil {
			err = ignoreNotFound(s.idents.Delete(ctx, ident, 0))
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
	if err := s.requireEmail(); err != nil {
		return 0, err
	}
	who := emailIdentity(login)
	p, err := s.verifyToken(ctx, who.providerID, token, purposeValidate, purposeRecover)
	if err != nil {
		return 0, err
	}
	switch {
	case p.token.For == purposeRecover:
		return OpenRecovery, nil
	case !s.email.PostValidation:
		return OpenRegistration, nil
	}
	user, ident, err := s.findOwner(asService(ctx, ""), who)
	if err != nil {
		return 0, err
	}
	if user.UUID == "" {
		return 0, errWrongToken()
	}
	if err := s.consumeToken(ctx, p); err != nil {
		return 0, err
	}
	return AddressValidated, s.markValidated(ctx, ident.UUID, from.Session != nil && from.Session.User.UUID == user.UUID)
}

// ChangePassword sets a new password for the user who is logged in, ends all
// sessions, and begins a new one. Whoever has a password shows it.
func (s *Service) ChangePassword(ctx context.Context, current, next string, from Client) (IssuedSession, error) {
	if err := checkPassword("newPassword", next); err != nil {
		return IssuedSession{}, err
	}
	if err := s.takeAttempt(from); err != nil {
		return IssuedSession{}, err
	}
	me := from.Session
	if kept, _ := object.Text(object.Field(me.User.Body, fieldPassword)); kept != "" {
		if right, err := s.verifyCurrentPassword(ctx, me, current); err != nil || !right {
			return IssuedSession{}, wrongPassword(err)
		}
	}
	hash, err := s.hasher.hash(ctx, next)
	if err != nil {
		return IssuedSession{}, err
	}
	if err := s.checkActive(asService(ctx, me.User.UUID), me); err != nil {
		return IssuedSession{}, err
	}
	user, err := s.updateCurrentUser(ctx, me, func(now object.Object) object.Object { return passwordFields(now, hash) })
	if err != nil {
		return IssuedSession{}, err
	}
	return s.startSession(ctx, user, emailType, from)
}
