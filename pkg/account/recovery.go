package account

import (
	"context"
	"errors"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store/object"
)

// RequestRecovery requests the mail with which a new password can be set. The
// result is the same for an unknown login.
func (s *Service) RequestRecovery(ctx context.Context, login string, from Client) error {
	return s.requestMail(ctx, login, recoveryMailbox, from, func(user record.User, _ record.Ident) record.Purpose {
		if user.UUID == "" || user.MarkedDisabled {
			return record.PurposeNone
		}
		return record.PurposeRecover
	})
}

// bindRecovery binds the token of a recovery mail to the account as it is now.
func (s *Service) bindRecovery(ctx context.Context, t *record.MailedToken, mailbox record.Mailbox) error {
	user, _, err := s.db.FindOwner(ctx, record.AddressIdentity(mailbox.Address))
	if err == nil && !user.MarkedDisabled { // else the token is of no use: the account was deleted or disabled since
		t.User, t.Epoch = user.UUID, user.Epoch
	}
	return err
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
	if err := checkLength(record.FieldPassword, c.Password); err != nil {
		return err
	}
	if err := s.guesses.Take(from.Address); err != nil {
		return err
	}
	if err := s.checkNew(ctx, record.FieldPassword, c.Password, c.own()); err != nil {
		return err
	}
	id := record.AddressIdentity(c.Login)
	token, err := s.verifyToken(ctx, id.ID, c.Token, record.PurposeRecover)
	if Repeated(err) != nil {
		return s.repeatedForm(ctx, id, c.Password, err, nil, from)
	}
	if err != nil {
		return err
	}
	user, ident, err := s.db.FindOwner(record.AsService(ctx, ""), id)
	if err != nil {
		return err
	}
	if !token.token.Recovers(user) || user.MarkedDisabled {
		if _, err := s.verifyToken(ctx, id.ID, c.Token, record.PurposeRecover); Repeated(err) != nil { // at the same time
			return s.repeatedForm(ctx, id, c.Password, err, nil, from)
		}
		return errWrongToken()
	}
	hash, err := s.hashPassword(ctx, c.Password)
	if err != nil {
		return err
	}
	if err := s.announceRecovery(record.AsService(ctx, user.UUID), id, user, ident); err != nil {
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
	s.guesses.Accounts.Succeed(id.UUID())
	return nil
}

// announceRecovery requests the notice of a recovery. Who recovers an account by its owner address, or one that nobody had proven, is
// never refused for the notices that others have caused.
func (s *Service) announceRecovery(ctx context.Context, id record.Identity, user record.User, ident record.Ident) error {
	to := id.ID
	if ident.Proven {
		found, err := s.db.StandingsOf(ctx, user)
		if err != nil {
			return err
		}
		to = found.ForNotices()
	}
	return s.announce(ctx, user, announcement{kind: NoticePassword, to: to, always: to == id.ID})
}

// recoverAccount sets the password of the account that the owner of an address
// is entitled to, or removes it if hash is "", and returns the account.
func (s *Service) recoverAccount(ctx context.Context, id record.Identity, user record.User, ident record.Ident, hash string) (record.User, error) {
	proven := ident.Proven
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
		id.Validated = true
		err = s.restoreIdent(record.AsService(ctx, user.UUID), user.UUID, id, "")
	}
	return user, err
}

// wasAddedToAccount reports whether the ident of an address was added to an
// account that has another ident.
func (s *Service) wasAddedToAccount(ctx context.Context, user record.User, ident record.Ident) (added bool, err error) {
	if !ident.Added {
		return false, nil
	}
	for found, err := range s.db.Idents.Owned(record.AsService(ctx, ""), user.UUID) {
		if err != nil {
			return added, err
		}
		added = added || found.UUID != ident.UUID
	}
	return added, nil
}

// moveToOwnAccount removes an address from an account and creates an account
// with it. If that fails, the address is free to be registered.
func (s *Service) moveToOwnAccount(ctx context.Context, id record.Identity, user record.User, ident, hash string) (record.User, error) {
	if err := s.unlinkOwn(ctx, user, ident, true); err != nil {
		return user, err
	}
	id.Validated = true
	reg := registration{identity: identity{Identity: id}, fields: object.Object{}, datas: object.Object{}}
	if hash != "" {
		reg.fields.Set(record.FieldPassword, hash)
		reg.fields.Set("_passwordByMail", true)
	}
	reg.datas.Set("login", id.ID)
	return s.createUser(ctx, reg)
}

// setPassword sets a hash for who has proven to have an address, or removes that of the user if it is "", and ends all sessions, and a
// deletion that was planned, atomically. Where the address had been proven before, the second factors are the owner's, and its own rights
// to undo end alone. Denied when the password has changed since the user was read.
func (s *Service) setPassword(ctx context.Context, user record.User, hash string, address record.Identity, provenBefore bool) (record.User, error) {
	return s.db.Users.Change(record.AsService(ctx, user.UUID), user.UUID, func(now *record.User) error {
		if !now.SameEpoch(user) {
			return errWrongToken()
		}
		now.Publish(s.db.AuditPassword(*now, record.ReasonRecovery))
		if now.Plan() != nil {
			now.Publish(s.db.Audit(event.AuthDeletionUndone, user.UUID, event.AuthDetails{Reason: record.ReasonRecovery}))
		}
		now.ForgetDevices()
		now.SetPassword(hash, hash != "")
		now.EndPlan()
		if provenBefore {
			now.Changes = withoutRightsOf(s.changesOf(*now), address)
			now.Write(record.FieldChanges)
		} else {
			now.Changes, now.Factors = nil, record.Factors{}
		}
		return nil
	})
}

// markValidated is validateIdent for an ident that may have been removed meanwhile.
func (s *Service) markValidated(ctx context.Context, uuid string, proven bool) error {
	return record.IgnoreNotFound(s.validateIdent(ctx, uuid, proven))
}

// validateIdent marks the address of an ident as validated, and as proven if the
// owner of the account did it, and resets its failed logins. NotFound if the ident was removed.
func (s *Service) validateIdent(ctx context.Context, uuid string, proven bool) error {
	at := ""
	if proven {
		ident, err := s.db.Idents.Read(record.AsService(ctx, ""), uuid)
		if err == nil {
			at, err = s.db.ProvenNow(ctx, ident.User)
		}
		if err != nil {
			return err
		}
	}
	_, err := s.db.Idents.Change(record.AsService(ctx, ""), uuid, func(i *record.Ident) error {
		i.Failures, i.Validated = record.Failures{At: s.now()}, true
		if proven && !i.Proven {
			i.Proven, i.ProvenAt = true, at
		}
		return nil
	})
	return err
}

// removeOtherIdents removes all idents of a user but one.
func (s *Service) removeOtherIdents(ctx context.Context, user record.User, keep string) error {
	ctx = record.AsService(ctx, user.UUID)
	var removed []record.Ident
	_, err := s.db.Users.Change(ctx, user.UUID, func(now *record.User) error {
		now.Unlinked, removed = map[string]uint64{}, nil
		for ident, err := range s.db.Idents.Owned(ctx, user.UUID) {
			if err != nil {
				return err
			}
			if ident.UUID != keep {
				now.Unlinked[ident.UUID] = ident.Revision
				removed = append(removed, ident)
			}
		}
		if len(removed) == 0 {
			return record.ErrUnchanged
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, ident := range removed {
		if err := record.IgnoreNotFound(s.db.Idents.Delete(ctx, ident.UUID, 0, s.db.AuditIdent(event.AuthLoginUnlinked, user.UUID, ident, record.ReasonRecovery))); err != nil {
			return err
		}
	}
	return nil
}

// Fields of forms, and of users.
const (
	fieldNewPassword = "newPassword"
)

// ChangePassword sets a new password for the user who is logged in, ends all
// sessions and starts a new one. A user with a password has to give it.
func (s *Service) ChangePassword(ctx context.Context, current, next string, from Client) (IssuedSession, error) {
	if err := RequireLogin(from.Session); err != nil {
		return IssuedSession{}, err
	}
	if err := checkLength(fieldNewPassword, next); err != nil {
		return IssuedSession{}, err
	}
	if err := s.guesses.Take(from.Address); err != nil {
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
			s.guesses.Return(from.Address)
		}
		return IssuedSession{}, err
	}
	hash, err := s.hashPassword(ctx, next)
	if err != nil {
		return IssuedSession{}, err
	}
	if err := s.checkActive(record.AsService(ctx, me.User.UUID), me); err != nil {
		return IssuedSession{}, err
	}
	if err := s.announce(record.AsService(ctx, me.User.UUID), me.User, announcement{kind: NoticePassword}); err != nil {
		return IssuedSession{}, err
	}
	byMail := provesMailboxAlone(me.Methods, me.User)
	user, err := s.changeCurrentUser(ctx, me, func(now *record.User) error {
		now.SetPassword(hash, byMail)
		now.Publish(s.db.AuditPassword(me.User, record.ReasonChange))
		return nil
	})
	if err != nil {
		return IssuedSession{}, err
	}
	return s.replaceBy(ctx, user, newSession{Proof: me.proof(), passwordSet: true}, from)
}
