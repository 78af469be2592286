package account

import (
	"context"
	"errors"
	"slices"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store/object"
)

// Unlink removes an ident of the user who is logged in. The removal of an address that was proven can be undone as a change of
// address is. NotFound when the ident is not theirs; Conflict when it is their last one; the errors of requireFresh; Limited.
func (s *Service) Unlink(ctx context.Context, me *Session, ident string) error {
	if err := s.requireFresh(ctx, me); err != nil {
		return err
	}
	return s.unlinkOwn(ctx, me.User, ident, false)
}

// unlinkOwn removes an ident of a user who asks for it. always is as in an announcement.
func (s *Service) unlinkOwn(ctx context.Context, user record.User, ident string, always bool) error {
	return s.unlinkIdent(record.AsService(ctx, user.UUID), unlinking{
		user: user.UUID, ident: ident, missing: errs.New(errs.NotFound, "you have no ident with this uuid"),
		last:     errs.New(errs.Conflict, "this is your last login: link another one first, or delete the account"),
		announce: true, undoable: true, always: always,
	})
}

// UnlinkFor removes an ident of a user on behalf of the caller whom ctx carries. Sessions that began
// with it stay. NotFound when it is not of the user; Conflict when it is their last one: without any
// the user could never log in again, whom to keep out is what SetDisabled is for.
func (s *Service) UnlinkFor(ctx context.Context, user, ident string) error {
	return s.unlinkIdent(record.Managing(ctx), unlinking{
		user: user, ident: ident, missing: errs.New(errs.NotFound, "the user has no ident with this uuid"),
		last:     errs.New(errs.Conflict, "this is the last login of the user, who could never log in again: disable the user to keep them out, or delete them to free the address"),
		announce: true, always: true,
	})
}

// unlinking is the removal of an ident of a user.
type unlinking struct {
	user, ident   string
	missing, last error // what is reported for an ident that is not of the user, and for their last one

	other string                       // an ident that the user may have, which an index need not find yet; "" for none
	check func(user record.User) error // asked with the user as of the write that marks the ident; nil: nothing

	announce bool                  // the owner address gets a mail before
	always   bool                  // however many it has got
	undoable bool                  // and can undo the removal, if it is that of an address that was proven
	change   *record.AddressChange // the removal as it is recorded; nil for one that can't be undone
}

func (s *Service) unlinkIdent(ctx context.Context, u unlinking) error {
	if !object.ValidUUID(u.ident) {
		return u.missing
	}
	for range record.Attempts {
		ident, err := s.db.Idents.Read(ctx, u.ident)
		if errors.Is(err, errs.NotFound) || err == nil && ident.User != u.user {
			return u.missing
		}
		if err != nil {
			return err
		}
		if u.announce {
			if err := s.announceUnlinking(ctx, &u, ident); err != nil {
				return err
			}
			u.announce = false // once, however often the ident is written meanwhile
		}
		if err := s.markUnlinked(ctx, u, ident); err != nil {
			return err
		}
		if err = s.db.Idents.Delete(ctx, u.ident, ident.Revision, s.db.AuditIdent(event.AuthLoginUnlinked, u.user, ident, "")); !errors.Is(err, errs.Mismatch) {
			return record.IgnoreNotFound(err)
		}
	}
	return errs.New(errs.Conflict, "the same login keeps being used: try again")
}

// announceUnlinking requests the mail about the removal of an ident that would not be refused.
func (s *Service) announceUnlinking(ctx context.Context, u *unlinking, ident record.Ident) error {
	user, err := s.db.Users.Read(ctx, u.user)
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
		return s.announce(ctx, user, announcement{kind: NoticeFactorRemoved, always: u.always})
	case ident.Type == record.Email && ident.Proven && u.undoable && s.email != nil:
		change, err := s.newChange(ctx, user, ident.UUID, "")
		if err == nil {
			err = s.checkChanges(user)
		}
		if err == nil {
			err = s.offerUndo(ctx, user, change)
		}
		u.change = &change
		return err
	case ident.Type == record.Email:
		about = ident.ID
		if err := s.announceToRegistered(ctx, user, about, announcement{kind: NoticeLoginRemoved, about: about, always: u.always}); err != nil {
			return err
		}
	}
	return s.announce(ctx, user, announcement{kind: NoticeLoginRemoved, about: about, always: u.always})
}

// markUnlinked marks an ident in its user as unlinked. It reports last when the user has
// no other ident.
func (s *Service) markUnlinked(ctx context.Context, u unlinking, ident record.Ident) error {
	_, err := s.db.Users.Change(ctx, u.user, func(user *record.User) error {
		if err := s.mark(ctx, u, user, ident); err != nil {
			return err
		}
		if u.change == nil || record.ChangeAt(s.changesOf(*user), u.change.ID) >= 0 {
			return nil
		}
		if err := s.checkChanges(*user); err != nil {
			return err
		}
		user.Changes = append(s.changesOf(*user), *u.change)
		return nil
	})
	return err
}

// mark marks an ident in its user, unless that is refused.
func (s *Service) mark(ctx context.Context, u unlinking, user *record.User, ident record.Ident) error {
	if u.check != nil {
		if err := u.check(*user); err != nil {
			return err
		}
	}
	var idents []string
	left := leftIdents{kinds: map[string]string{}, proven: map[string]bool{}}
	for found, err := range s.db.Idents.Owned(ctx, user.UUID) {
		if err != nil {
			return err
		}
		idents = append(idents, found.UUID)
		left.kinds[found.UUID], left.proven[found.UUID] = found.Type, found.Proven
	}
	if u.other != "" && !slices.Contains(idents, u.other) {
		idents = append(idents, u.other)
		left.kinds[u.other], left.proven[u.other] = record.Email, true
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
		user.Publish(s.db.Audit(event.AuthFactorRemoved, user.UUID, event.AuthDetails{Method: record.MethodPasskey, Factor: ident.UUID}))
	}
	unlinked[ident.UUID] = max(unlinked[ident.UUID], ident.Revision)
	user.Unlinked = unlinked
	left.uuids = slices.DeleteFunc(idents, func(uuid string) bool { return unlinked[uuid] > 0 })
	if err := left.carry(user.Factors, ident.Type); err != nil {
		return err
	}
	ok, err := s.anyOwned(ctx, left.uuids, user.UUID)
	if err == nil && !ok {
		err = u.last
	}
	return err
}

// leftIdents are the idents of a user after an unlinking.
type leftIdents struct {
	uuids  []string
	kinds  map[string]string
	proven map[string]bool
}

// carry reports Conflict if nobody could prove a second factor any more without an ident of a kind: there is no passkey, or no
// address to which codes go, as standings.forCodes finds it.
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
		return errs.New(errs.Conflict, "this is the last passkey, and passkeys are a second factor of the account: remove that factor first")
	case without == record.Email && f.Has(record.FactorEmail) && proven == 0 && addresses != 1:
		return errs.New(errs.Conflict, "codes of mails are a second factor of the account, and there would be no address to which they can go: remove that factor first")
	}
	return nil
}

// anyOwned reports whether a user has at least one of some idents. It reads them
// because they were found by an index, which may lag.
func (s *Service) anyOwned(ctx context.Context, idents []string, user string) (bool, error) {
	for _, uuid := range idents {
		ident, err := s.db.Idents.Read(ctx, uuid)
		if err == nil && ident.User == user {
			return true, nil
		}
		if record.IgnoreNotFound(err) != nil {
			return false, err
		}
	}
	return false, nil
}

// clearUnlinked removes the mark of an ident that was linked again.
func (s *Service) clearUnlinked(ctx context.Context, me *Session, ident record.Ident) error {
	_, err := s.changeCurrentUser(ctx, me, func(now *record.User) error {
		if at, ok := now.Unlinked[ident.UUID]; !ok || at >= ident.Revision {
			return record.ErrUnchanged
		}
		delete(now.Unlinked, ident.UUID)
		return nil
	})
	return err
}
