package recovery

import (
	"context"
	"errors"

	"belfry/pkg/account/flow/changes"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/notices"
	"belfry/pkg/account/once"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/account/users"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
)

// Request requests the mail with which a new password can be set. The
// result is the same for an unknown login.
func (s *Flow) Request(ctx context.Context, login string, from sessions.Client) error {
	return s.Post.Request(ctx, login, post.RecoveryMailbox, from,
		func(user record.User, _ record.Ident) record.Purpose {
			if user.UUID == "" || user.MarkedDisabled {
				return record.PurposeNone
			}
			return record.PurposeRecover
		})
}

// BindRecovery binds the token of a recovery mail to the account as it is now.
func (s *Flow) BindRecovery(ctx context.Context, t *record.MailedToken, mailbox record.Mailbox) error {
	user, _, err := s.DB.FindOwner(ctx, record.AddressIdentity(mailbox.Address))
	// Otherwise the token is useless, because the account was deleted or disabled since.
	if err == nil && !user.MarkedDisabled {
		t.User, t.Epoch = user.UUID, user.Epoch
	}
	return err
}

// Recover sets a new password by the token of a recovery mail, and ends all
// sessions of the user. A token is for the password that the account had when it
// was mailed: after a stranger has read the user's mails, a new password makes
// the tokens in them useless.
//
// If addresses are validated after the registration, a stranger may have registered the address. The stranger must not
// keep access to the account: unless somebody has proven to have both the address and the account, all other idents and
// the second factors are removed. A user who has added a wrong address must not lose the account to the owner of the
// address: the address moves to an account of its own.
func (s *Flow) Recover(ctx context.Context, c passwords.Credentials, from sessions.Client) error {
	if err := s.Post.RequireEmail(); err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return err
	}
	if err := passwords.CheckLength(record.FieldPassword, c.Password); err != nil {
		return err
	}
	if err := s.Guesses.Take(from.Address); err != nil {
		return err
	}
	if err := s.Passwords.CheckNew(ctx, record.FieldPassword, c.Password, c.Own()); err != nil {
		return err
	}
	id := record.AddressIdentity(c.Login)
	token, err := s.Post.Verify(ctx, id.ID, c.Token, record.PurposeRecover)
	if once.Repeated(err) != nil {
		return s.Passwords.RepeatedForm(ctx, id, c.Password, err, nil, from)
	}
	if err != nil {
		return err
	}
	user, ident, err := s.DB.FindOwner(record.AsService(ctx, ""), id)
	if err != nil {
		return err
	}
	if !token.Token.Recovers(user) || user.MarkedDisabled {
		// At the same time.
		if _, err := s.Post.Verify(ctx, id.ID, c.Token, record.PurposeRecover); once.Repeated(err) != nil {
			return s.Passwords.RepeatedForm(ctx, id, c.Password, err, nil, from)
		}
		return post.TokenError()
	}
	hash, err := s.Passwords.Hash(ctx, c.Password)
	if err != nil {
		return err
	}
	if err := s.announceRecovery(record.AsService(ctx, user.UUID), id, user, ident); err != nil {
		return err
	}
	if err := s.Post.Consume(ctx, token, record.ActPassword, from); once.Repeated(err) != nil {
		return s.Passwords.RepeatedForm(ctx, id, c.Password, err, nil, from)
	} else if err != nil {
		return err
	}
	if _, err = s.RecoverAccount(ctx, id, user, ident, hash); err != nil {
		return err
	}
	s.Guesses.Accounts.Succeed(id.UUID())
	return nil
}

// announceRecovery requests the notice of a recovery. Notices that others have caused never prevent a recovery by the
// owner address, or by an address that nobody had proven.
func (s *Flow) announceRecovery(ctx context.Context, id record.Identity, user record.User, ident record.Ident) error {
	to := id.ID
	if ident.Proven {
		found, err := s.DB.StandingsOf(ctx, user)
		if err != nil {
			return err
		}
		to = found.ForNotices()
	}
	return s.Notices.Announce(ctx, user,
		notices.Announcement{Kind: notices.NoticePassword, To: to, Always: to == id.ID})
}

// RecoverAccount sets the password of the account that the owner of an address
// is entitled to, or removes it if hash is "", and returns the account.
func (s *Flow) RecoverAccount(ctx context.Context, id record.Identity, user record.User, ident record.Ident,
	hash string) (record.User, error) {
	proven := ident.Proven
	if !proven {
		added, err := s.wasAddedToAccount(ctx, user, ident)
		if err != nil {
			return user, err
		}
		if added {
			return s.moveToOwnAccount(ctx, id, user, ident.UUID, hash)
		}
		if err := s.Notices.AnnounceToOwner(ctx, user, id); err != nil {
			return user, err
		}
		if err := s.Links.RemoveOtherIdents(ctx, user, ident.UUID); err != nil {
			return user, err
		}
	}
	user, err := s.setPassword(ctx, user, hash, id, proven)
	if err != nil {
		return user, err
	}
	if proven {
		return user, s.Links.MarkValidated(ctx, ident.UUID, true)
	}
	// Until setPassword ended the session, a stranger could link another identity, or remove this one.
	if err := s.Links.RemoveOtherIdents(ctx, user, ident.UUID); err != nil {
		return user, err
	}
	err = s.Links.Validate(ctx, ident.UUID, true)
	if errors.Is(err, errs.NotFound) {
		id.Validated = true
		err = s.Links.Restore(record.AsService(ctx, user.UUID), user.UUID, id, "")
	}
	return user, err
}

// wasAddedToAccount reports whether the ident of an address was added to an
// account that has another ident.
func (s *Flow) wasAddedToAccount(ctx context.Context, user record.User, ident record.Ident) (added bool, err error) {
	if !ident.Added {
		return false, nil
	}
	for found, err := range s.DB.Idents.Owned(record.AsService(ctx, ""), user.UUID) {
		if err != nil {
			return added, err
		}
		added = added || found.UUID != ident.UUID
	}
	return added, nil
}

// moveToOwnAccount removes an address from an account and creates an account
// with it. If that fails, the address is free to be registered.
func (s *Flow) moveToOwnAccount(ctx context.Context, id record.Identity, user record.User,
	ident, hash string) (record.User, error) {
	if err := s.Links.UnlinkOwn(ctx, user, ident, true); err != nil {
		return user, err
	}
	id.Validated = true
	reg := users.New{Identity: users.Identity{Identity: id}, Fields: object.Object{}, Datas: object.Object{}}
	if hash != "" {
		reg.Fields.Set(record.FieldPassword, hash)
		reg.Fields.Set("_passwordByMail", true)
	}
	reg.Datas.Set("login", id.ID)
	return s.Users.Create(ctx, reg)
}

// setPassword sets a hash for the proven owner of an address, or removes that of the user if it is "", and ends all
// sessions, and a deletion that was planned, atomically. Where the address had been proven before, the second factors
// are the owner's, and its own rights to undo are the only ones that end. Denied when the password has changed since
// the user was read.
func (s *Flow) setPassword(ctx context.Context, user record.User, hash string, address record.Identity,
	provenBefore bool) (record.User, error) {
	return s.DB.Users.Change(record.AsService(ctx, user.UUID), user.UUID, func(now *record.User) error {
		if !now.SameEpoch(user) {
			return post.TokenError()
		}
		now.Publish(s.DB.AuditPassword(*now, record.ReasonRecovery))
		if now.Plan() != nil {
			now.Publish(s.DB.Audit(event.AuthDeletionUndone, user.UUID,
				event.AuthDetails{Reason: record.ReasonRecovery}))
		}
		now.ForgetDevices()
		now.SetPassword(hash, hash != "")
		now.EndPlan()
		if provenBefore {
			now.Changes = changes.WithoutRightsOf(s.Changes.ChangesOf(*now), address)
			now.Write(record.FieldChanges)
		} else {
			now.Changes, now.Factors = nil, record.Factors{}
		}
		return nil
	})
}

// Fields of forms, and of users.
const (
	fieldNewPassword = "newPassword"
)

// ChangePassword sets a new password for the logged-in user, ends all
// sessions and starts a new one. A user with a password has to give it.
func (s *Flow) ChangePassword(ctx context.Context, current, next string,
	from sessions.Client) (sessions.Issued, error) {
	if err := sessions.RequireLogin(from.Session); err != nil {
		return sessions.Issued{}, err
	}
	if err := passwords.CheckLength(fieldNewPassword, next); err != nil {
		return sessions.Issued{}, err
	}
	if err := s.Guesses.Take(from.Address); err != nil {
		return sessions.Issued{}, err
	}
	me := from.Session
	own, err := s.Passwords.OwnOf(ctx, me.User)
	if err != nil {
		return sessions.Issued{}, err
	}
	if err := s.Passwords.CheckNew(ctx, fieldNewPassword, next, own); err != nil {
		return sessions.Issued{}, err
	}
	if err := s.Passwords.RequireProofOr(ctx, me, current, next); err != nil {
		if once.Repeated(err) != nil {
			s.Guesses.Return(from.Address)
		}
		return sessions.Issued{}, err
	}
	hash, err := s.Passwords.Hash(ctx, next)
	if err != nil {
		return sessions.Issued{}, err
	}
	if err := s.Sessions.CheckActive(record.AsService(ctx, me.User.UUID), me); err != nil {
		return sessions.Issued{}, err
	}
	if err := s.Notices.Announce(record.AsService(ctx, me.User.UUID), me.User,
		notices.Announcement{Kind: notices.NoticePassword}); err != nil {
		return sessions.Issued{}, err
	}
	byMail := sessions.ProvesMailboxAlone(me.Methods, me.User)
	user, err := s.Sessions.ChangeCurrent(ctx, me, func(now *record.User) error {
		now.SetPassword(hash, byMail)
		now.Publish(s.DB.AuditPassword(me.User, record.ReasonChange))
		return nil
	})
	if err != nil {
		return sessions.Issued{}, err
	}
	return s.Sessions.ReplaceBy(ctx, user, sessions.New{Proof: me.Proof(), PasswordSet: true}, from)
}
