package account

import (
	"cmp"
	"context"
	"errors"
	"time"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

// linkAddress adds an address to the account of the user who is logged in. A
// user with a password has to give it: a stolen session must not become a
// permanent login.
func (s *Service) linkAddress(ctx context.Context, id record.Identity, c Credentials, from Client) (IssuedSession, error) {
	me := from.Session
	if !s.email.PostValidation {
		// Only those who have the token may learn whether the address is taken. It comes first: the password that a form is sent with again
		// is that of another account, and no wrong guess.
		if _, err := s.verifyToken(ctx, id.ID, c.Token, record.PurposeValidate); err != nil {
			return IssuedSession{}, err
		}
	}
	hash, err := s.verifyOrHashPassword(ctx, me, c.Password)
	if err != nil {
		return IssuedSession{}, err
	}
	owner, _, err := s.db.FindOwner(record.AsService(ctx, ""), id)
	if err != nil {
		return IssuedSession{}, err
	}
	if owner.UUID != "" && owner.UUID != me.User.UUID {
		return IssuedSession{}, id.ErrTaken()
	}
	if owner.UUID == "" {
		if err := s.announce(record.AsService(ctx, me.User.UUID), me.User, announcement{kind: NoticeLoginAdded, about: id.ID}); err != nil {
			return IssuedSession{}, err
		}
	}
	if hash != "" {
		if err := s.announce(record.AsService(ctx, me.User.UUID), me.User, announcement{kind: NoticePassword}); err != nil {
			return IssuedSession{}, err
		}
	}
	if id.Validated, err = s.consumeRegistrationToken(ctx, id, c.Token, from); err != nil {
		return IssuedSession{}, err
	}
	if err := s.linkIdent(ctx, identity{Identity: id}, me); err != nil {
		return IssuedSession{}, err
	}
	user, err := s.changeCurrentUser(ctx, me, func(now *record.User) error {
		if hash == "" {
			return record.ErrUnchanged
		}
		now.Password, now.PasswordByMail = hash, provesMailboxAlone(me.Methods, me.User)
		now.Publish(s.db.AuditPassword(me.User, record.ReasonFirst))
		return nil
	})
	if err != nil {
		return IssuedSession{}, err
	}
	s.requestValidation(ctx, id)
	return s.replaceSession(ctx, user, me.proof(), from)
}

// verifyOrHashPassword verifies the password of a user who has one. For a user
// without one it returns the hash that is to be set.
func (s *Service) verifyOrHashPassword(ctx context.Context, me *Session, password string) (hash string, err error) {
	if err := s.requireProof(ctx, me, password); err != nil || hasPassword(me) {
		return "", err
	}
	return s.hashPassword(ctx, password)
}

// linkIdent adds an identity to the account of the user who is logged in. An
// identity that is theirs already is no error, unless it can be linked once; Exists when it is another's. also are events of its creation.
func (s *Service) linkIdent(ctx context.Context, id identity, me *Session, also ...store.ExtraEvent) error {
	user := me.User
	ctx = record.AsService(ctx, user.UUID)
	ident := id.ident()
	ident.User, ident.Added, ident.Epoch = user.UUID, true, &user.Epoch
	if id.Provider == record.Email && id.Validated {
		at, err := s.db.ProvenNow(ctx, user.UUID)
		if err != nil {
			return err
		}
		ident.ProvenAt = at
	}
	ident.Publish(s.db.Audit(event.AuthLoginLinked, user.UUID, event.AuthDetails{Method: id.Provider, Factor: id.UUID()}))
	ident.Publish(id.events...)
	ident.Publish(also...)
	for range record.Attempts {
		created, err := s.db.Idents.Create(ctx, id.UUID(), ident)
		if err == nil {
			if err := s.confirmLink(ctx, me, created); err != nil {
				return err
			}
			return s.clearUnlinked(ctx, me, created)
		}
		if !errors.Is(err, errs.Exists) {
			return err
		}
		owner, there, err := s.db.FindOwner(ctx, id.Identity)
		switch {
		case err != nil:
			return err
		case owner.UUID != "" && id.single:
			return errs.New(errs.Exists, "this %s is registered already", id.Provider)
		case owner.UUID == user.UUID:
			if _, err = s.recordProviderUse(ctx, there.UUID, id); err == nil {
				there, err = s.raiseEpoch(ctx, there.UUID, user.Epoch)
			}
			if errors.Is(err, errs.NotFound) {
				continue // unlinked meanwhile
			}
			if err != nil {
				return err
			}
			return s.clearUnlinked(ctx, me, there)
		case owner.UUID != "":
			return id.ErrTaken()
		case there.UUID == "":
			continue // deleted meanwhile
		}
		// The ident of an interrupted registration, or of a deleted user.
		if err := s.requireAbandoned(ctx, there); err != nil {
			return err
		}
		if err := record.IgnoreStale(s.db.Idents.Delete(ctx, there.UUID, there.Revision)); err != nil {
			return err
		}
	}
	return record.ErrContention()
}

// registrationTimeout is longer than a registration takes between its two
// records.
const registrationTimeout = time.Minute

// requireAbandoned reports Conflict for an ident whose user may be about to be
// created: that user would have no ident.
func (s *Service) requireAbandoned(ctx context.Context, ident record.Ident) error {
	_, deleted, err := s.db.Users.Deleted(ctx, ident.User)
	if err != nil {
		return err
	}
	if !deleted && s.now().Sub(record.Time(ident.Updated)) < registrationTimeout {
		return errs.New(errs.Conflict, "somebody is registering with this login: try again in a minute")
	}
	return nil
}

// raiseEpoch records in an ident that a session of an epoch has linked it.
func (s *Service) raiseEpoch(ctx context.Context, ident string, to uint64) (record.Ident, error) {
	return s.db.Idents.Change(ctx, ident, func(i *record.Ident) error {
		if i.LinkedIn() >= to {
			return record.ErrUnchanged
		}
		i.Epoch = &to
		return nil
	})
}

// confirmLink deletes an ident that was linked by a session that has ended: what
// ended the session may have listed the user's idents just before this one was
// created.
//
// Another request may have written the ident since. If all sessions of the user were ended, and none that began later has linked
// it, it is deleted all the same: the other request has found it only because this one has created it.
func (s *Service) confirmLink(ctx context.Context, me *Session, ident record.Ident) error {
	ended := s.checkActive(ctx, me)
	if !errors.Is(ended, errs.Unauthenticated) {
		return ended
	}
	for range record.Attempts {
		undone := s.db.AuditIdent(event.AuthLoginUnlinked, me.User.UUID, ident, record.ReasonEnded)
		err := s.db.Idents.Delete(ctx, ident.UUID, ident.Revision, undone)
		if !errors.Is(err, errs.Mismatch) {
			return cmp.Or(record.IgnoreNotFound(err), ended)
		}
		user, err := s.db.Users.Read(ctx, me.User.UUID)
		if err == nil {
			ident, err = s.db.Idents.Read(ctx, ident.UUID)
		}
		if err != nil {
			return cmp.Or(record.IgnoreNotFound(err), ended)
		}
		mine := me.User.Epoch
		if ident.User != me.User.UUID || user.Epoch <= mine || ident.LinkedIn() > mine {
			return ended
		}
	}
	return record.ErrContention()
}

// HasAddress reports whether an address is one of the user who is logged in, who has a password: a form that adds it, or that has
// registered it, does nothing more.
func (s *Service) HasAddress(ctx context.Context, me *Session, address string) (bool, error) {
	if !hasPassword(me) {
		return false, nil
	}
	owner, _, err := s.db.FindOwner(record.AsService(ctx, ""), record.AddressIdentity(address))
	return owner.UUID == me.User.UUID, err
}
