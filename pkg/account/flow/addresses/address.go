package addresses

import (
	"context"
	"errors"

	"belfry/pkg/account/flow/changes"
	"belfry/pkg/account/flow/links"
	"belfry/pkg/account/notices"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/account/users"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// Request requests the mails by which the address of an ident is replaced: one to the new address, to confirm it, and
// one to the old address, by which the change can be undone. Nothing changes until the new address is confirmed. The
// effect and the reply are the same for an address that belongs to another user, who is informed.
//
// Errors: those of RequireFresh; Invalid; NotFound for an ident that is not an address of the user; Denied for a wrong
// password; Exists for an address of the user's own; Limited.
func (s *Flow) Request(ctx context.Context, ident, address, password string, from sessions.Client) error {
	me := from.Session
	if me == nil {
		return errNoSession()
	}
	if err := s.Sessions.RequireFresh(ctx, me); err != nil {
		return err
	}
	if err := s.Post.RequireEmail(); err != nil {
		return err
	}
	if _, err := record.NormalizeAddress(address); err != nil {
		return &errs.Error{Kind: errs.Invalid, Message: "the new address can't be used",
			Fields: []errs.Field{{Pointer: "/address", Message: "expected an address such as ada@example.com"}}}
	}
	if err := s.Guesses.Take(from.Address); err != nil {
		return err
	}
	ctx = record.AsService(ctx, me.User.UUID)
	if err := s.Links.CheckOwnAddress(ctx, me, ident); err != nil {
		return err
	}
	if sessions.HasPassword(me) {
		if err := s.Passwords.VerifyCurrent(ctx, me, password); err != nil {
			return err
		}
	}
	id := record.AddressIdentity(address)
	owner, _, err := s.DB.FindOwner(ctx, id)
	if err != nil {
		return err
	}
	if owner.UUID == me.User.UUID {
		return errs.New(errs.Exists, "you already log in with this address")
	}
	why := record.PurposeChange
	if owner.UUID != "" {
		why = record.PurposeTaken
	}
	change, err := s.Changes.New(ctx, me.User, ident, id.ID)
	if err != nil {
		return err
	}
	return s.Changes.RepeatedRequest(ctx, me.User.UUID, change, s.startChange(ctx, me, change, why))
}

func errNoSession() error {
	return errs.New(errs.Unauthenticated, "log in first, to the account whose address is changed")
}

// startChange records a change, and requests its mails. It informs the address that may undo the change first, even of
// a change that can't be confirmed: the requester learns nothing from that.
func (s *Flow) startChange(ctx context.Context, me *sessions.Session, c record.AddressChange,
	why record.Purpose) error {
	if err := s.Changes.CheckChanges(me.User); err != nil {
		return err
	}
	if err := s.Changes.OfferUndo(ctx, me.User, c); err != nil {
		return err
	}
	_, err := s.Sessions.ChangeCurrent(ctx, me, func(now *record.User) error {
		if err := s.Changes.CheckChanges(*now); err != nil {
			return err
		}
		now.Changes = append(s.Changes.ChangesOf(*now), c)
		return nil
	})
	if err != nil {
		return err
	}
	return s.Post.Order(ctx, post.Order{Mailbox: post.MailboxUUID(c.To, post.ChangeMailbox), Address: c.To, Why: why,
		With: changes.AboutChange(me.User, c)})
}

// Finish confirms a change of address by the token that was mailed to the new address, or undoes it by the one that was
// mailed to the old address. Both can be repeated if they were interrupted.
//
// Confirming requires a session of the user: otherwise a mistyped address would give the account to its owner. Undoing
// does not, because a thief may have made the change.
//
// Errors: Unauthenticated; Denied for a wrong token; Exists for an address that another account has meanwhile
// registered; Limited.
func (s *Flow) Finish(ctx context.Context, login, token string, from sessions.Client) (undone bool, err error) {
	if err := s.Post.RequireEmail(); err != nil {
		return false, err
	}
	if err := sessions.RequireTexts("a login and a token are needed", "login", login, "token", token); err != nil {
		return false, err
	}
	if err := s.Guesses.Take(from.Address); err != nil {
		return false, err
	}
	id := record.AddressIdentity(login)
	id.Validated = true
	verified, err := s.Post.Verify(ctx, id.ID, token, record.PurposeChange, record.PurposeUndo)
	if err != nil {
		return false, s.Changes.RepeatedChange(err, from)
	}
	if undone = verified.Token.For == record.PurposeUndo; undone {
		if err = s.undoChange(ctx, id, verified, from); errors.Is(err, post.ErrToken) {
			err = s.Changes.UndoneAtOnce(ctx, id, token, err, from)
		}
	} else {
		err = s.confirmChange(ctx, id, verified, from)
	}
	if err == nil {
		s.Guesses.Return(from.Address)
	}
	return undone, err
}

// confirmChange creates the ident of the new address, and then removes that of the old one: the user always has one of
// them. The token is used up last, so that an interrupted change is completed by repeating it.
func (s *Flow) confirmChange(ctx context.Context, id record.Identity, v post.VerifiedToken,
	from sessions.Client) error {
	me := from.Session
	if me == nil {
		return errNoSession()
	}
	if err := errors.Join(sessions.RequireLogin(me), sessions.RequireComplete(me)); err != nil {
		return err
	}
	// A second factor may have been added to the account since the request.
	if err := s.Sessions.RequireSecond(ctx, me); err != nil {
		return err
	}
	changes := s.Changes.ChangesOf(me.User)
	at := record.ChangeAt(changes, v.Token.Change)
	if v.Token.User != me.User.UUID || v.Token.Epoch != me.User.Epoch || at < 0 || changes[at].Undoing {
		return post.TokenError()
	}
	change := changes[at]
	if err := s.Notices.AnnounceToRegistered(ctx, me.User, change.From,
		notices.Announcement{Kind: notices.NoticeAddress, About: id.ID, Always: true}); err != nil {
		return err
	}
	changed := s.DB.Audit(event.AuthAddressChanged, me.User.UUID, event.AuthDetails{Factor: id.UUID(), Session: me.ID})
	if err := s.Links.Link(ctx, users.Identity{Identity: id}, me, changed); err != nil {
		return err
	}
	gone := errs.New(errs.NotFound, "the old address is no longer a login of yours")
	err := s.Links.Remove(record.AsService(ctx, me.User.UUID), links.Removal{
		User: me.User.UUID, Ident: change.Ident, Other: id.UUID(), Missing: gone, Last: sessions.EndedError(),
		Check: func(now record.User) error {
			if !now.SameEpoch(me.User) {
				return sessions.EndedError()
			}
			return nil
		},
	})
	if record.IgnoreNotFound(err) != nil {
		return err
	}
	if err := post.IgnoreUsed(s.Post.Consume(ctx, v, record.ActAddress, from)); err != nil {
		return err
	}
	if err := s.Notices.Announce(record.AsService(ctx, me.User.UUID), me.User,
		notices.Announcement{Kind: notices.NoticeAddress, About: id.ID, Always: true}); err != nil {
		// The address that may undo the change was informed when it was requested.
		s.Log.ErrorContext(ctx, "auth: requesting a notice failed", "user", me.User.UUID,
			"notice", notices.NoticeAddress, "error", err)
	}
	return nil
}
