package account

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// linkAddress adds an address to the account of the user who is logged in. A
// user with a password has to give it: a stolen session must not become a
// permanent login.
func (s *Service) linkAddress(ctx context.Context, id identity, c Credentials, from Client) (IssuedSession, error) {
	me := from.Session
	if !s.email.PostValidation {
		// Only those who have the token may learn whether the address is taken. It comes first: the password that a form is sent with again
		// is that of another account, and no wrong guess.
		if _, err := s.verifyToken(ctx, id.providerID, c.Token, purposeValidate); err != nil {
			return IssuedSession{}, err
		}
	}
	newPassword, err := s.verifyOrHashPassword(ctx, me, c.Password)
	if err != nil {
		return IssuedSession{}, err
	}
	owner, _, err := s.findOwner(asService(ctx, ""), id)
	if err != nil {
		return IssuedSession{}, err
	}
	if owner.UUID != "" && owner.UUID != me.User.UUID {
		return IssuedSession{}, id.errTaken()
	}
	if owner.UUID == "" {
		if err := s.announce(asService(ctx, me.User.UUID), me.User, announcement{kind: NoticeLoginAdded, about: id.providerID}); err != nil {
			return IssuedSession{}, err
		}
	}
	if newPassword != nil {
		if err := s.announce(asService(ctx, me.User.UUID), me.User, announcement{kind: NoticePassword}); err != nil {
			return IssuedSession{}, err
		}
	}
	if id.validated, err = s.consumeRegistrationToken(ctx, id, c.Token, from); err != nil {
		return IssuedSession{}, err
	}
	if err := s.linkIdent(ctx, id, me); err != nil {
		return IssuedSession{}, err
	}
	user, err := s.updateCurrentUser(ctx, me, func(object.Object) object.Object { return newPassword }, s.auditPassword(me.User, reasonFirst))
	if err != nil {
		return IssuedSession{}, err
	}
	s.requestValidation(ctx, id)
	return s.replaceSession(ctx, user, me.proof(), from)
}

// verifyOrHashPassword verifies the password of a user who has one. For a user
// without one it returns the fields that set it.
func (s *Service) verifyOrHashPassword(ctx context.Context, me *Session, password string) (fields object.Object, err error) {
	if err := s.requireProof(ctx, me, password); err != nil {
		return nil, err
	}
	if hasPassword(me) {
		return nil, nil
	}
	hash, err := s.hasher.hash(ctx, password)
	if err != nil {
		return nil, err
	}
	fields = object.Object{markByMail: nil}
	fields.Set(fieldPassword, hash)
	if provesMailboxAlone(me.Methods, me.User) {
		fields.Set(markByMail, true)
	}
	return fields, nil
}

// linkIdent adds an identity to the account of the user who is logged in. An
// identity that is theirs already is no error, unless it can be linked once; Exists when it is another's. also are events of its creation.
func (s *Service) linkIdent(ctx context.Context, id identity, me *Session, also ...store.ExtraEvent) error {
	user := me.User
	ctx = asService(ctx, user.UUID)
	fields := id.identFields()
	fields.Set(fieldUser, user.UUID)
	fields.Set(fieldAdded, true)
	if id.provider == emailType && id.validated {
		at, err := s.provenNow(ctx, user.UUID)
		if err != nil {
			return err
		}
		fields.Set(fieldProvenAt, at)
	}
	mine := epochIn(user.Body)
	fields.Set(fieldEpoch, mine)
	s.setTokens(fields, store.Stored{}, id)
	for range maxAttempts {
		linked := s.audit(event.AuthLoginLinked, user.UUID, event.AuthDetails{Method: id.provider, Factor: id.uuid()})
		created, err := s.idents.Save(ctx, fields, id.uuid(), slices.Concat([]store.ExtraEvent{linked}, id.events, also)...)
		if err == nil {
			if err := s.confirmLink(ctx, me, created); err != nil {
				return err
			}
			return s.clearUnlinked(ctx, me, created)
		}
		if !errors.Is(err, errs.Exists) {
			return err
		}
		owner, ident, err := s.findOwner(ctx, id)
		switch {
		case err != nil:
			return err
		case owner.UUID != "" && id.single:
			return errs.New(errs.Exists, "this %s is registered already", id.provider)
		case owner.UUID == user.UUID:
			if _, err = s.recordProviderUse(ctx, ident.UUID, id); err == nil {
				ident, err = s.raiseEpoch(ctx, ident.UUID, mine)
			}
			if errors.Is(err, errs.NotFound) {
				continue // unlinked meanwhile
			}
			if err != nil {
				return err
			}
			return s.clearUnlinked(ctx, me, ident)
		case owner.UUID != "":
			return id.errTaken()
		case ident.UUID == "":
			continue // deleted meanwhile
		}
		// The ident of an interrupted registration, or of a deleted user.
		if err := s.requireAbandoned(ctx, ident); err != nil {
			return err
		}
		if err := ignoreStale(s.idents.Delete(ctx, ident.UUID, ident.Revision)); err != nil {
			return err
		}
	}
	return errContention()
}

// registrationTimeout is longer than a registration takes between its two
// records.
const registrationTimeout = time.Minute

// requireAbandoned reports Conflict for an ident whose user may be about to be
// created: that user would have no ident.
func (s *Service) requireAbandoned(ctx context.Context, ident store.Stored) error {
	o, err := ident.Object()
	if err != nil {
		return err
	}
	user, _ := o.Text(fieldUser)
	_, deleted, err := s.users.Deleted(ctx, user)
	if err != nil {
		return err
	}
	if !deleted && s.now().Sub(timeField(o, "updated")) < registrationTimeout {
		return errs.New(errs.Conflict, "somebody is registering with this login: try again in a minute")
	}
	return nil
}

// raiseEpoch records in an ident that a session of an epoch has linked it.
func (s *Service) raiseEpoch(ctx context.Context, ident string, to uint64) (store.Stored, error) {
	return s.idents.Mutate(ctx, ident, func(now store.Stored) (store.Mutation, error) {
		if epochIn(now.Body) >= to {
			return store.Mutation{}, nil
		}
		fields := object.Object{}
		fields.Set(fieldEpoch, to)
		return store.Mutation{Fields: fields}, nil
	})
}

// epochIn is the epoch in the body of a user or an ident.
func epochIn(body []byte) uint64 {
	return epoch(object.Object{fieldEpoch: object.Field(body, fieldEpoch)})
}

// confirmLink deletes an ident that was linked by a session that has ended: what
// ended the session may have listed the user's idents just before this one was
// created.
//
// Another request may have written the ident since. If all sessions of the user were ended, and none that began later has linked
// it, it is deleted all the same: the other request has found it only because this one has created it.
func (s *Service) confirmLink(ctx context.Context, me *Session, ident store.Stored) error {
	ended := s.checkActive(ctx, me)
	if !errors.Is(ended, errs.Unauthenticated) {
		return ended
	}
	for range maxAttempts {
		undone := s.auditIdent(event.AuthLoginUnlinked, me.User.UUID, ident, reasonEnded)
		err := s.idents.Delete(ctx, ident.UUID, ident.Revision, undone)
		if !errors.Is(err, errs.Mismatch) {
			return cmp.Or(ignoreNotFound(err), ended)
		}
		user, err := s.users.Get(ctx, me.User.UUID)
		if err == nil {
			ident, err = s.idents.Get(ctx, ident.UUID)
		}
		if err != nil {
			return cmp.Or(ignoreNotFound(err), ended)
		}
		mine := epochIn(me.User.Body)
		if owner, _ := object.Text(object.Field(ident.Body, fieldUser)); owner != me.User.UUID || epochIn(user.Body) <= mine || epochIn(ident.Body) > mine {
			return ended
		}
	}
	return errContention()
}

// HasAddress reports whether an address is one of the user who is logged in, who has a password: a form that adds it, or that has
// registered it, does nothing more.
func (s *Service) HasAddress(ctx context.Context, me *Session, address string) (bool, error) {
	if !hasPassword(me) {
		return false, nil
	}
	owner, _, err := s.findOwner(asService(ctx, ""), emailIdentity(address))
	return owner.UUID == me.User.UUID, err
}
