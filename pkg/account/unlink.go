package account

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// fieldUnlinked holds, in a user, the idents that are being unlinked. They no
// longer count as logins of the user. Because every unlinking writes the user's
// record, two concurrent ones cannot each take the other's ident for the last.
//
// An ident is marked at a revision. Linking it again first makes a new revision
// of it and then removes the mark, unless the new revision was marked meanwhile.
const fieldUnlinked = "_unlinked"

// unlinkedIdents maps idents to the latest revision at which they were marked.
type unlinkedIdents map[string]uint64

func unlinkedOf(body []byte) unlinkedIdents {
	unlinked := unlinkedIdents{}
	_ = json.Unmarshal(object.Field(body, fieldUnlinked), &unlinked)
	return unlinked
}

// Unlink removes an ident of the user who is logged in. The removal of an address that was proven can be undone as a change of
// address is. NotFound when the ident is not theirs; Conflict when it is their last one; the errors of requireFresh; Limited.
func (s *Service) Unlink(ctx context.Context, me *Session, ident string) error {
	if err := s.requireFresh(ctx, me); err != nil {
		return err
	}
	return s.unlinkOwn(ctx, me, ident, false)
}

// unlinkOwn removes an ident of the user of a session. always is as in an announcement.
func (s *Service) unlinkOwn(ctx context.Context, me *Session, ident string, always bool) error {
	return s.unlinkIdent(asService(ctx, me.User.UUID), unlinking{
		user: me.User.UUID, ident: ident, missing: errs.New(errs.NotFound, "you have no ident with this uuid"),
		last:     errs.New(errs.Conflict, "this is your last login: link another one first, or delete the account"),
		announce: true, undoable: true, always: always,
	})
}

// UnlinkFor removes an ident of a user on behalf of the caller whom ctx carries. Sessions that began
// with it stay. NotFound when it is not of the user; Conflict when it is their last one: without any
// the user could never log in again, whom to keep out is what SetDisabled is for.
func (s *Service) UnlinkFor(ctx context.Context, user, ident string) error {
	return s.unlinkIdent(managing(ctx), unlinking{
		user: user, ident: ident, missing: errs.New(errs.NotFound, "the user has no ident with this uuid"),
		last:     errs.New(errs.Conflict, "this is the last login of the user, who could never log in again: disable the user to keep them out, or delete them to free the address"),
		announce: true, always: true,
	})
}

// unlinking is the removal of an ident of a user.
type unlinking struct {
	user, ident   string
	missing, last error // what is reported for an ident that is not of the user, and for their last one

	other string                        // an ident that the user may have, which an index need not find yet; "" for none
	check func(user store.Stored) error // asked with the user as of the write that marks the ident; nil: nothing

	announce bool           // the owner address gets a mail before
	always   bool           // however many it has got
	undoable bool           // and can undo the removal, if it is that of an address that was proven
	change   *addressChange // the removal as it is recorded; nil for one that can't be undone
}

func (s *Service) unlinkIdent(ctx context.Context, u unlinking) error {
	if !object.ValidUUID(u.ident) {
		return u.missing
	}
	for range maxAttempts {
		stored, err := s.idents.Get(ctx, u.ident)
		if errors.Is(err, errs.NotFound) {
			return u.missing
		}
		if err != nil {
			return err
		}
		if owner, _ := object.Text(object.Field(stored.Body, fieldUser)); owner != u.user {
			return u.missing
		}
		if u.announce {
			if err := s.announceUnlinking(ctx, &u, stored); err != nil {
				return err
			}
			u.announce = false // once, however often the ident is written meanwhile
		}
		if err := s.markUnlinked(ctx, u, stored); err != nil {
			return err
		}
		if err = s.idents.Delete(ctx, u.ident, stored.Revision, s.auditIdent(event.AuthLoginUnlinked, u.user, stored, "")); !errors.Is(err, errs.Mismatch) {
			return ignoreNotFound(err)
		}
	}
	return errs.New(errs.Conflict, "the same login keeps being used: try again")
}

// announceUnlinking requests the mail about the removal of an ident that would not be refused.
func (s *Service) announceUnlinking(ctx context.Context, u *unlinking, ident store.Stored) error {
	user, err := s.users.Get(ctx, u.user)
	if err != nil {
		return err
	}
	if _, err := s.unlinkMutation(ctx, *u, user, ident); err != nil {
		return err
	}
	o, err := ident.Object()
	if err != nil {
		return err
	}
	kind, _ := o.Text("type")
	switch {
	case kind == PasskeyType:
		return s.announce(ctx, user, announcement{kind: NoticeFactorRemoved, always: u.always})
	case kind == emailType && isProven(ident) && u.undoable && s.email != nil:
		change, err := s.newChange(ctx, user, ident.UUID, "")
		if err == nil {
			err = s.checkChanges(user)
		}
		if err == nil {
			err = s.offerUndo(ctx, user, change)
		}
		u.change = &change
		return err
	case kind == emailType:
		kind, _ = o.Text("_id")
		if err := s.announceToRegistered(ctx, user, kind, announcement{kind: NoticeLoginRemoved, about: kind, always: u.always}); err != nil {
			return err
		}
	}
	return s.announce(ctx, user, announcement{kind: NoticeLoginRemoved, about: kind, always: u.always})
}

// markUnlinked marks an ident in its user as unlinked. It reports last when the user has
// no other ident.
func (s *Service) markUnlinked(ctx context.Context, u unlinking, ident store.Stored) error {
	_, err := s.users.Mutate(ctx, u.user, func(user store.Stored) (store.Mutation, error) {
		m, err := s.unlinkMutation(ctx, u, user, ident)
		if err == nil && u.change != nil && changeAt(s.changesOf(user.Body), u.change.ID) < 0 {
			if err = s.checkChanges(user); err == nil {
				m.Fields = m.Fields.Merge(s.withChange(user, *u.change))
			}
		}
		return m, err
	})
	return err
}

// unlinkMutation returns the write of a user that marks an ident.
func (s *Service) unlinkMutation(ctx context.Context, u unlinking, user, ident store.Stored) (store.Mutation, error) {
	if u.check != nil {
		if err := u.check(user); err != nil {
			return store.Mutation{}, err
		}
	}
	var idents []string
	left := leftIdents{kinds: map[string]string{}, proven: map[string]bool{}}
	if err := forEachOwned(ctx, s.idents, user.UUID, func(found store.Stored, o object.Object) error {
		idents = append(idents, found.UUID)
		left.kinds[found.UUID], _ = o.Text("type")
		left.proven[found.UUID] = isProven(found)
		return nil
	}); err != nil {
		return store.Mutation{}, err
	}
	if u.other != "" && !slices.Contains(idents, u.other) {
		idents = append(idents, u.other)
		left.kinds[u.other], left.proven[u.other] = emailType, true
	}
	// Marks of deleted idents are no longer needed.
	unlinked := unlinkedOf(user.Body)
	maps.DeleteFunc(unlinked, func(uuid string, _ uint64) bool { return !slices.Contains(idents, uuid) })
	var removed []store.ExtraEvent
	left.kinds[ident.UUID], _ = object.Text(object.Field(ident.Body, "type")) // also if the index lags
	if isPasskey(ident) && unlinked[ident.UUID] == 0 {
		removed = append(removed, s.audit(event.AuthFactorRemoved, user.UUID, event.AuthDetails{Method: MethodPasskey, Factor: ident.UUID}))
	}
	unlinked[ident.UUID] = max(unlinked[ident.UUID], ident.Revision)
	left.uuids = slices.DeleteFunc(idents, func(uuid string) bool { return unlinked[uuid] > 0 })
	if err := left.carry(factorsOf(user.Body), left.kinds[ident.UUID]); err != nil {
		return store.Mutation{}, err
	}
	ok, err := s.anyOwned(ctx, left.uuids, user.UUID)
	if err != nil {
		return store.Mutation{}, err
	}
	if !ok {
		return store.Mutation{}, u.last
	}
	fields := object.Object{}
	fields.Set(fieldUnlinked, unlinked)
	return store.Mutation{Fields: fields, ExtraEvents: removed}, nil
}

// leftIdents are the idents of a user after an unlinking.
type leftIdents struct {
	uuids  []string
	kinds  map[string]string
	proven map[string]bool
}

// carry reports Conflict if nobody could prove a second factor any more without an ident of a kind: there is no passkey, or no
// address to which codes go, as standings.forCodes finds it.
func (l leftIdents) carry(f factors, without string) error {
	passkeys, addresses, proven := 0, 0, 0
	for _, uuid := range l.uuids {
		switch l.kinds[uuid] {
		case PasskeyType:
			passkeys++
		case emailType:
			addresses++
			if l.proven[uuid] {
				proven++
			}
		}
	}
	switch {
	case without == PasskeyType && f.Passkey != nil && passkeys == 0:
		return errs.New(errs.Conflict, "this is the last passkey, and passkeys are a second factor of the account: remove that factor first")
	case without == emailType && f.Email != nil && proven == 0 && addresses != 1:
		return errs.New(errs.Conflict, "codes of mails are a second factor of the account, and there would be no address to which they can go: remove that factor first")
	}
	return nil
}

// anyOwned reports whether a user has at least one of some idents. It reads them
// because they were found by an index, which may lag.
func (s *Service) anyOwned(ctx context.Context, idents []string, user string) (bool, error) {
	for _, uuid := range idents {
		stored, err := s.idents.Get(ctx, uuid)
		if owner, _ := object.Text(object.Field(stored.Body, fieldUser)); err == nil && owner == user {
			return true, nil
		}
		if ignoreNotFound(err) != nil {
			return false, err
		}
	}
	return false, nil
}

// clearUnlinked removes the mark of an ident that was linked again.
func (s *Service) clearUnlinked(ctx context.Context, me *Session, ident store.Stored) error {
	_, err := s.updateCurrentUser(ctx, me, func(now object.Object) object.Object {
		unlinked := unlinkedOf(now.Encode())
		if at, ok := unlinked[ident.UUID]; !ok || at >= ident.Revision {
			return nil
		}
		delete(unlinked, ident.UUID)
		fields := object.Object{}
		fields.Set(fieldUnlinked, unlinked)
		return fields
	})
	return err
}
