package account

import (
	"context"
	"errors"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// RequestRecovery requests the mail with which a new password can be set. The
// result is the same for an unknown login.
func (s *Service) RequestRecovery(ctx context.Context, login string, from Client) error {
	return s.requestMail(ctx, login, recoveryMailbox, from, func(user store.Stored, _ object.Object) purpose {
		if user.UUID == "" || IsDisabled(user) {
			return purposeNone
		}
		return purposeRecover
	})
}

// Recover sets a new password by the token of a recovery mail, and ends all
// sessions of the user. A token is for the password that the account had when it
// was mailed: who changes the password because a stranger read their mails is safe
// from the tokens in these.
//
// Where addresses are validated afterwards, somebody may have registered an
// address of somebody else. They must not keep access to the account: as long as
// nobody has proven to have both the address and the account, all other idents and the second factors
// are removed. And somebody who added a wrong address to their account must not
// lose the account to the owner of the address: the address moves to an account
// of its own.
func (s *Service) Recover(ctx context.Context, c Credentials, from Client) error {
	if err := s.requireEmail(); err != nil {
		return err
	}
	if err := c.validate(); err != nil {
		return err
	}
	if err := checkLength(fieldPassword, c.Password); err != nil {
		return err
	}
	if err := s.takeAttempt(from); err != nil {
		return err
	}
	if err := s.checkNew(ctx, fieldPassword, c.Password, c.own()); err != nil {
		return err
	}
	id := emailIdentity(c.Login)
	token, err := s.verifyToken(ctx, id.providerID, c.Token, purposeRecover)
	if Repeated(err) != nil {
		return s.repeatedForm(ctx, id, c.Password, err, nil, from)
	}
	if err != nil {
		return err
	}
	user, ident, err := s.findOwner(asService(ctx, ""), id)
	if err != nil {
		return err
	}
	if !token.token.recovers(user) || IsDisabled(user) {
		if _, err := s.verifyToken(ctx, id.providerID, c.Token, purposeRecover); Repeated(err) != nil { // at the same time
			return s.repeatedForm(ctx, id, c.Password, err, nil, from)
		}
		return errWrongToken()
	}
	hash, err := s.hasher.hash(ctx, c.Password)
	if err != nil {
		return err
	}
	if err := s.announceRecovery(asService(ctx, user.UUID), id, user, ident); err != nil {
		return err
	}
	if err := s.consumeToken(ctx, token, ActPassword, from); Repeated(err) != nil {
		return s.repeatedForm(ctx, id, c.Password, err, nil, from)
	} else if err != nil {
		return err
	}
	if _, err = s.recoverAccount(ctx, id, user, ident, hash); err != nil {
		return err
	}
	s.accounts.succeed(id.uuid())
	return nil
}

// announceRecovery requests the notice of a recovery. Who recovers an account by its owner address, or one that nobody had proven, is
// never refused for the notices that others have caused.
func (s *Service) announceRecovery(ctx context.Context, id identity, user, ident store.Stored) error {
	to := id.providerID
	if isProven(ident) {
		found, err := s.standingsOf(ctx, user)
		if err != nil {
			return err
		}
		to = found.forNotices()
	}
	return s.announce(ctx, user, announcement{kind: NoticePassword, to: to, always: to == id.providerID})
}

// recoverAccount sets the password of the account that the owner of an address
// is entitled to, or removes it if hash is "", and returns the account.
func (s *Service) recoverAccount(ctx context.Context, id identity, user, ident store.Stored, hash string) (store.Stored, error) {
	proven := isProven(ident)
	if !proven {
		added, err := s.wasAddedToAccount(ctx, user, ident)
		if err != nil {
			return user, err
		}
		if added {
			return s.moveToOwnAccount(ctx, id, user, ident.UUID, hash)
		}
		if err := s.announceToOwner(ctx, user, id); err != nil {
			return user, err
		}
		if err := s.removeOtherIdents(ctx, user, ident.UUID); err != nil {
			return user, err
		}
	}
	user, err := s.setPassword(ctx, user, hash, id, proven)
	if err != nil {
		return user, err
	}
	if proven {
		return user, s.markValidated(ctx, ident.UUID, true)
	}
	// A stranger could link another identity until setPassword ended the session, or remove this one.
	if err := s.removeOtherIdents(ctx, user, ident.UUID); err != nil {
		return user, err
	}
	err = s.validateIdent(ctx, ident.UUID, true)
	if errors.Is(err, errs.NotFound) {
		id.validated = true
		err = s.restoreIdent(asService(ctx, user.UUID), user.UUID, id, "")
	}
	return user, err
}

// isProven reports whether an ident is marked with fieldProven.
func isProven(ident store.Stored) bool {
	return string(object.Field(ident.Body, fieldProven)) == "true"
}

// wasAddedToAccount reports whether the ident of an address was added to an
// account that has another ident.
func (s *Service) wasAddedToAccount(ctx context.Context, user, ident store.Stored) (added bool, err error) {
	if string(object.Field(ident.Body, fieldAdded)) != "true" {
		return false, nil
	}
	err = forEachOwned(asService(ctx, ""), s.idents, user.UUID, func(found store.Stored, _ object.Object) error {
		added = added || found.UUID != ident.UUID
		return nil
	})
	return added, err
}

// moveToOwnAccount removes an address from an account and creates an account
// with it. If that fails, the address is free to be registered.
func (s *Service) moveToOwnAccount(ctx context.Context, id identity, user store.Stored, ident, hash string) (store.Stored, error) {
	if err := s.unlinkOwn(ctx, &Session{User: user}, ident, true); err != nil {
		return user, err
	}
	id.validated = true
	reg := registration{identity: id, fields: object.Object{}, datas: object.Object{}}
	if hash != "" {
		reg.fields.Set(fieldPassword, hash)
		reg.fields.Set(markByMail, true)
	}
	reg.datas.Set(fieldLogin, id.providerID)
	return s.createUser(ctx, reg)
}

// setPassword sets a hash for who has proven to have an address, or removes that of the user if it is "", and ends all sessions, and a
// deletion that was planned, atomically. Where the address had been proven before, the second factors are the owner's, and its own rights
// to undo end alone. Denied when the password has changed since the user was read.
func (s *Service) setPassword(ctx context.Context, user store.Stored, hash string, address identity, provenBefore bool) (store.Stored, error) {
	return s.users.Mutate(asService(ctx, user.UUID), user.UUID, func(now store.Stored) (store.Mutation, error) {
		if !sameEpoch(now, user) {
			return store.Mutation{}, errWrongToken()
		}
		o, err := now.Object()
		if err != nil {
			return store.Mutation{}, err
		}
		fields := passwordFields(o, hash, hash != "").Merge(forgetDevices(o)).Merge(noPlan())
		if provenBefore {
			fields.Set(fieldChanges, withoutRightsOf(s.changesOf(now.Body), address))
		} else {
			fields[fieldChanges] = nil
			fields = fields.Merge(factors{}.fields())
		}
		events := []store.ExtraEvent{s.auditPassword(now, reasonRecovery)}
		if planOf(o) != nil {
			events = append(events, s.audit(event.AuthDeletionUndone, user.UUID, event.AuthDetails{Reason: reasonRecovery}))
		}
		return store.Mutation{Fields: fields, ExtraEvents: events}, nil
	})
}

// passwordFields are the fields of a user that change with the password; "" removes it. byMail says that it proves the mailbox alone.
func passwordFields(user object.Object, hash string, byMail bool) object.Object {
	fields := object.Object{fieldPassword: nil, markByMail: nil}
	if hash != "" {
		fields.Set(fieldPassword, hash)
	}
	if byMail {
		fields.Set(markByMail, true)
	}
	fields.Set(fieldEpoch, epoch(user)+1)
	return fields
}

// markValidated is validateIdent for an ident that may have been removed meanwhile.
func (s *Service) markValidated(ctx context.Context, uuid string, proven bool) error {
	return ignoreNotFound(s.validateIdent(ctx, uuid, proven))
}

// validateIdent marks the address of an ident as validated, and as proven if the
// owner of the account did it, and resets its failed logins. NotFound if the ident was removed.
func (s *Service) validateIdent(ctx context.Context, uuid string, proven bool) error {
	at := ""
	if proven {
		ident, err := s.idents.Get(asService(ctx, ""), uuid)
		if err == nil {
			user, _ := object.Text(object.Field(ident.Body, fieldUser))
			at, err = s.provenNow(ctx, user)
		}
		if err != nil {
			return err
		}
	}
	_, err := s.idents.Mutate(asService(ctx, ""), uuid, func(ident store.Stored) (store.Mutation, error) {
		fields := object.Object{fieldFailures: failures{At: s.now()}.encode()}
		fields.Set("validated", true)
		if proven && !isProven(ident) {
			fields.Set(fieldProven, true)
			fields.Set(fieldProvenAt, at)
		}
		return store.Mutation{Fields: fields}, nil
	})
	return err
}

// removeOtherIdents removes all idents of a user but one.
func (s *Service) removeOtherIdents(ctx context.Context, user store.Stored, keep string) error {
	ctx = asService(ctx, user.UUID)
	var others unlinkedIdents
	var removed []store.Stored
	_, err := s.users.Mutate(ctx, user.UUID, func(store.Stored) (store.Mutation, error) {
		others, removed = unlinkedIdents{}, nil
		err := forEachOwned(ctx, s.idents, user.UUID, func(ident store.Stored, _ object.Object) error {
			if ident.UUID != keep {
				others[ident.UUID] = ident.Revision
				removed = append(removed, ident)
			}
			return nil
		})
		if len(others) == 0 || err != nil {
			return store.Mutation{}, err
		}
		fields := object.Object{}
		fields.Set(fieldUnlinked, others)
		return store.Mutation{Fields: fields}, nil
	})
	if err != nil {
		return err
	}
	for _, ident := range removed {
		if err := ignoreNotFound(s.idents.Delete(ctx, ident.UUID, 0, s.auditIdent(event.AuthLoginUnlinked, user.UUID, ident, reasonRecovery))); err != nil {
			return err
		}
	}
	return nil
}

const fieldNewPassword = "newPassword" // of the form

// ChangePassword sets a new password for the user who is logged in, ends all
// sessions and starts a new one. A user with a password has to give it.
func (s *Service) ChangePassword(ctx context.Context, current, next string, from Client) (IssuedSession, error) {
	if err := RequireLogin(from.Session); err != nil {
		return IssuedSession{}, err
	}
	if err := checkLength(fieldNewPassword, next); err != nil {
		return IssuedSession{}, err
	}
	if err := s.takeAttempt(from); err != nil {
		return IssuedSession{}, err
	}
	me := from.Session
	own, err := s.ownOf(ctx, me.User)
	if err != nil {
		return IssuedSession{}, err
	}
	if err := s.checkNew(ctx, fieldNewPassword, next, own); err != nil {
		return IssuedSession{}, err
	}
	if err := s.requireProofOr(ctx, me, current, next); err != nil {
		if Repeated(err) != nil {
			s.returnAttempt(from)
		}
		return IssuedSession{}, err
	}
	hash, err := s.hasher.hash(ctx, next)
	if err != nil {
		return IssuedSession{}, err
	}
	if err := s.checkActive(asService(ctx, me.User.UUID), me); err != nil {
		return IssuedSession{}, err
	}
	if err := s.announce(asService(ctx, me.User.UUID), me.User, announcement{kind: NoticePassword}); err != nil {
		return IssuedSession{}, err
	}
	byMail := provesMailboxAlone(me.Methods, me.User)
	user, err := s.updateCurrentUser(ctx, me, func(now object.Object) object.Object { return passwordFields(now, hash, byMail) }, s.auditPassword(me.User, reasonChange))
	if err != nil {
		return IssuedSession{}, err
	}
	return s.replaceBy(ctx, user, newSession{proof: me.proof(), passwordSet: true}, from)
}
