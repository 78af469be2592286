package links

import (
	"context"
	"errors"
	"slices"

	"belfry/pkg/account/notices"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
)

// Unlink removes an ident of the logged-in user. The removal of a proven address can be undone, like a change of
// address. NotFound if the ident is not the user's; Conflict if it is the last one; the errors of RequireFresh;
// Limited.
func (s *Flow) Unlink(ctx context.Context, me *sessions.Session, ident string) error {
	if err := s.Sessions.RequireFresh(ctx, me); err != nil {
		return err
	}
	return s.UnlinkOwn(ctx, me.User, ident, false)
}

// UnlinkOwn removes an ident of a user on their own request. always is as in an announcement.
func (s *Flow) UnlinkOwn(ctx context.Context, user record.User, ident string, always bool) error {
	return s.Remove(record.AsService(ctx, user.UUID), Removal{
		User: user.UUID, Ident: ident, Missing: errs.New(errs.NotFound, "you have no ident with this uuid"),
		Last:     errs.New(errs.Conflict, "this is your last login: link another one first, or delete the account"),
		Announce: true, undoable: true, Always: always,
	})
}

// Removal is the removal of an ident of a user.
type Removal struct {
	User, Ident   string
	Missing, Last error // errors for another user's ident, and for the user's last one

	Other string                       // an ident that the user may have, which an index need not find yet; "" for none
	Check func(user record.User) error // called with the user as of the write that marks the ident; may be nil

	Announce bool                  // the owner address gets a mail before
	Always   bool                  // regardless of how many it got before
	undoable bool                  // and can undo the removal of a proven address
	change   *record.AddressChange // the recorded removal; nil if it can't be undone
}

// Remove removes an ident of a user.
func (s *Flow) Remove(ctx context.Context, u Removal) error {
	if !object.ValidUUID(u.Ident) {
		return u.Missing
	}
	for range record.Attempts {
		ident, err := s.DB.Idents.Read(ctx, u.Ident)
		if errors.Is(err, errs.NotFound) || err == nil && ident.User != u.User {
			return u.Missing
		}
		if err != nil {
			return err
		}
		if u.Announce {
			if err := s.announceUnlinking(ctx, &u, ident); err != nil {
				return err
			}
			u.Announce = false // once, however often the ident is written meanwhile
		}
		if err := s.markUnlinked(ctx, u, ident); err != nil {
			return err
		}
		if err = s.DB.Idents.Store.Delete(ctx, u.Ident, ident.Revision,
			s.DB.AuditIdent(event.AuthLoginUnlinked, u.User, ident, "")); !errors.Is(err, errs.Mismatch) {
			return record.IgnoreNotFound(err)
		}
	}
	return errs.New(errs.Conflict, "the same login keeps being used: try again")
}

// announceUnlinking requests the mail about the removal of an ident that would not be refused.
func (s *Flow) announceUnlinking(ctx context.Context, u *Removal, ident record.Ident) error {
	user, err := s.DB.Users.Read(ctx, u.User)
	if err != nil {
		return err
	}
	after := user
	if err := s.mark(ctx, *u, &after, ident); err != nil {
		return err
	}
	about := ident.Type
	switch {
	case ident.Type == record.PasskeyType:
		return s.Notices.Announce(ctx, user, notices.Announcement{Kind: notices.NoticeFactorRemoved, Always: u.Always})
	case ident.Type == record.Email && ident.Proven && u.undoable && s.Email != nil:
		change, err := s.Changes.New(ctx, user, ident.UUID, "")
		if err == nil {
			err = s.Changes.CheckChanges(user)
		}
		if err == nil {
			err = s.Changes.OfferUndo(ctx, user, change)
		}
		u.change = &change
		return err
	case ident.Type == record.Email:
		about = ident.ID
		if err := s.Notices.AnnounceToRegistered(ctx, user, about,
			notices.Announcement{Kind: notices.NoticeLoginRemoved, About: about, Always: u.Always}); err != nil {
			return err
		}
	}
	return s.Notices.Announce(ctx, user,
		notices.Announcement{Kind: notices.NoticeLoginRemoved, About: about, Always: u.Always})
}

// markUnlinked marks an ident in its user as unlinked. It reports last when the user has
// no other ident.
func (s *Flow) markUnlinked(ctx context.Context, u Removal, ident record.Ident) error {
	_, err := s.DB.Users.Change(ctx, u.User, func(user *record.User) error {
		if err := s.mark(ctx, u, user, ident); err != nil {
			return err
		}
		if u.change == nil || record.ChangeAt(s.Changes.ChangesOf(*user), u.change.ID) >= 0 {
			return nil
		}
		if err := s.Changes.CheckChanges(*user); err != nil {
			return err
		}
		user.Changes = append(s.Changes.ChangesOf(*user), *u.change)
		return nil
	})
	return err
}

// mark marks an ident in its user, unless that is refused.
func (s *Flow) mark(ctx context.Context, u Removal, user *record.User, ident record.Ident) error {
	if u.Check != nil {
		if err := u.Check(*user); err != nil {
			return err
		}
	}
	var idents []string
	left := leftIdents{kinds: map[string]string{}, proven: map[string]bool{}}
	for found, err := range s.DB.Idents.Owned(ctx, user.UUID) {
		if err != nil {
			return err
		}
		idents = append(idents, found.UUID)
		left.kinds[found.UUID], left.proven[found.UUID] = found.Type, found.Proven
	}
	if u.Other != "" && !slices.Contains(idents, u.Other) {
		idents = append(idents, u.Other)
		left.kinds[u.Other], left.proven[u.Other] = record.Email, true
	}
	// Marks of deleted idents are no longer needed.
	unlinked := map[string]uint64{}
	for uuid, at := range user.Unlinked {
		if slices.Contains(idents, uuid) {
			unlinked[uuid] = at
		}
	}
	left.kinds[ident.UUID] = ident.Type // also if the index lags
	if ident.Type == record.PasskeyType && unlinked[ident.UUID] == 0 {
		user.Publish(s.DB.Audit(event.AuthFactorRemoved, user.UUID,
			event.AuthDetails{Method: record.MethodPasskey, Factor: ident.UUID}))
	}
	unlinked[ident.UUID] = max(unlinked[ident.UUID], ident.Revision)
	user.Unlinked = unlinked
	left.uuids = slices.DeleteFunc(idents, func(uuid string) bool { return unlinked[uuid] > 0 })
	if err := left.carry(user.Factors, ident.Type); err != nil {
		return err
	}
	ok, err := s.Users.AnyOwned(ctx, left.uuids, user.UUID)
	if err == nil && !ok {
		err = u.Last
	}
	return err
}

// leftIdents are the idents of a user after an unlinking.
type leftIdents struct {
	uuids  []string
	kinds  map[string]string
	proven map[string]bool
}

// carry returns Conflict if the user could no longer prove a second factor without an ident of a kind, because no
// passkey, or no address for codes (see standings.forCodes), would be left.
func (l leftIdents) carry(f record.Factors, without string) error {
	passkeys, addresses, proven := 0, 0, 0
	for _, uuid := range l.uuids {
		switch l.kinds[uuid] {
		case record.PasskeyType:
			passkeys++
		case record.Email:
			addresses++
			if l.proven[uuid] {
				proven++
			}
		}
	}
	switch {
	case without == record.PasskeyType && f.Has(record.FactorPasskey) && passkeys == 0:
		return errs.New(errs.Conflict,
			"this is the last passkey, and passkeys are a second factor of the account: remove that factor first")
	case without == record.Email && f.Has(record.FactorEmail) && proven == 0 && addresses != 1:
		return errs.New(errs.Conflict, "codes by mail are a second factor of the account, and no address for them "+
			"would be left: remove that factor first")
	}
	return nil
}

// clearUnlinked removes the mark of an ident that was linked again.
func (s *Flow) clearUnlinked(ctx context.Context, me *sessions.Session, ident record.Ident) error {
	_, err := s.Sessions.ChangeCurrent(ctx, me, func(now *record.User) error {
		if at, ok := now.Unlinked[ident.UUID]; !ok || at >= ident.Revision {
			return record.ErrUnchanged
		}
		delete(now.Unlinked, ident.UUID)
		return nil
	})
	return err
}
