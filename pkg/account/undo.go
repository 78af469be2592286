package account

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

// undoChange gives the account back to who has the address that was proven longest when the change was requested. One write of the
// user ends all sessions, removes the password, and ends this change and all others that the address can undo or that came after
// it, with their tokens: those of a thief's own mailbox too, and a deletion that was planned since. Then the addresses of before are
// restored, and the idents are removed that were added since the change was requested. What is older than the change stays.
func (s *Service) undoChange(ctx context.Context, id record.Identity, v verifiedToken, from Client) error {
	user, err := s.db.Users.Read(record.AsService(ctx, ""), v.token.User)
	if errors.Is(err, errs.NotFound) || err == nil && user.MarkedDisabled {
		return errWrongToken()
	}
	if err != nil {
		return err
	}
	ctx = record.AsService(ctx, user.UUID)
	all := s.changesOf(user)
	if at := record.ChangeAt(all, v.token.Change); at >= 0 { // else it ends below, or continues an undoing that was interrupted
		owner, ident, err := s.db.FindOwner(ctx, id)
		if err != nil {
			return err
		}
		if owner.UUID != "" && owner.UUID != user.UUID && ident.Proven {
			return id.ErrTaken()
		}
		// Whoever has the account now may be its owner, and the mailbox a stranger's by now.
		may, err := s.mayUndo(ctx, user, all[at], id)
		if err == nil && may {
			err = s.announceToOwner(ctx, user, id)
		}
		if err != nil {
			return err
		}
	}
	change, err := s.beginUndoing(ctx, user.UUID, v.token.Change, id)
	if err != nil {
		return err
	}
	restored, err := s.restoreIdents(ctx, user.UUID, id, change)
	if err != nil {
		return err
	}
	if err := s.removeAdded(ctx, user.UUID, restored, change); err != nil {
		return err
	}
	if err := s.endUndoing(ctx, user.UUID, change.ID, restored); err != nil {
		return err
	}
	// Without the change the token is of no use any more.
	if err := ignoreUsed(s.consumeToken(ctx, v, ActUndone, from)); err != nil {
		s.log.WarnContext(ctx, "auth: removing the token of an undone change of address failed; it is of no use", "error", err)
	}
	s.guesses.Accounts.Succeed(id.UUID())
	if err := s.enqueueMailAs(ctx, id.ID, recoveryMailbox, record.PurposeRecover); err != nil {
		s.log.WarnContext(ctx, "auth: requesting a recovery mail failed; the user can request another", "error", err)
	}
	return nil
}

// mayUndo reports whether an address has the right to undo a change. A release that did not know who has the right gave it to the
// address that was replaced; of such a change it has the right still if no other address of the account is older than the change.
func (s *Service) mayUndo(ctx context.Context, user record.User, c record.AddressChange, address record.Identity) (bool, error) {
	switch {
	case c.Kept:
		return false, nil
	case c.Holder != "":
		return c.Holder == address.ID, nil
	case c.Ident != address.UUID():
		return false, nil
	}
	found, err := s.db.StandingsOf(ctx, user)
	older := slices.ContainsFunc(found.All, func(a record.Standing) bool {
		return a.Address != address.ID && a.Since != "" && a.Since < c.At
	})
	return !older, err
}

// beginUndoing makes the write that decides an undoing.
func (s *Service) beginUndoing(ctx context.Context, user, id string, address record.Identity) (change record.AddressChange, err error) {
	_, err = s.db.Users.Change(ctx, user, func(now *record.User) error {
		all := s.changesOf(*now)
		at := record.ChangeAt(all, id)
		if at < 0 {
			return errWrongToken()
		}
		change = all[at]
		if may, err := s.mayUndo(ctx, *now, change, address); !may || err != nil {
			return cmp.Or(err, errWrongToken())
		}
		if change.Undoing {
			return record.ErrUnchanged
		}
		change.Undoing = true
		for _, later := range all[at+1:] {
			change.Later = append(append(change.Later, later.To), later.Later...)
			if later.Since != "" && later.Since < change.At {
				change.Restore = append(change.Restore, record.FormerAddress{Address: later.From, Since: later.Since})
			}
		}
		now.ForgetDevices()
		now.SetPassword("", false)
		now.Factors = now.Factors.AddedBefore(change.At)
		now.Changes = append(withoutRightsOf(all[:at:at], address), change)
		now.Publish(s.db.Audit(event.AuthAddressChanged, user, event.AuthDetails{Factor: address.UUID(), Reason: "undone"}))
		if plan := now.Plan(); plan != nil && plan.Planned >= change.At { // its notice has reached the thief, if there is one
			now.EndPlan()
			now.Publish(s.db.Audit(event.AuthDeletionUndone, user, event.AuthDetails{Reason: "undone"}))
		}
		return nil
	})
	if errors.Is(err, errs.NotFound) {
		err = errWrongToken()
	}
	return change, err
}

// restoreIdents gives a user the addresses of before a change again, and returns the uuids of their idents: that of who undoes it, and
// others unless they belong to somebody else by now.
func (s *Service) restoreIdents(ctx context.Context, user string, id record.Identity, c record.AddressChange) (restored []string, err error) {
	since := map[string]string{id.ID: ""}
	for _, former := range append(c.Restore, record.FormerAddress{Address: c.From, Since: c.Since}) {
		if former.Since != "" {
			since[former.Address] = former.Since
		}
	}
	for _, address := range slices.Sorted(maps.Keys(since)) {
		again := record.AddressIdentity(address)
		again.Validated = true
		err := s.restoreIdent(ctx, user, again, since[address])
		switch {
		case err == nil:
			restored = append(restored, again.UUID())
		case address == id.ID || !errors.Is(err, errs.Exists):
			return nil, err
		}
	}
	return restored, nil
}

// restoreIdent gives a user the ident of an address again. A stranger may have registered the address since without
// having it. The ident gets another revision in any case, so that a confirmation in progress does not remove it.
func (s *Service) restoreIdent(ctx context.Context, user string, id record.Identity, since string) error {
	again := id.Ident()
	again.User, again.ProvenAt = user, since
	for range record.Attempts {
		_, err := s.db.Idents.Create(ctx, id.UUID(), again)
		if err == nil {
			return nil
		}
		if !errors.Is(err, errs.Exists) {
			return err
		}
		owner, ident, err := s.db.FindOwner(ctx, id)
		switch {
		case err != nil:
			return err
		case owner.UUID == user:
			if err := s.validateIdent(ctx, ident.UUID, true); !errors.Is(err, errs.NotFound) {
				return err
			}
			continue // it was removed meanwhile
		case owner.UUID != "" && ident.Proven:
			return id.ErrTaken()
		case owner.UUID != "":
			if _, err := s.EndSessions(ctx, owner.UUID); record.IgnoreNotFound(err) != nil {
				return err
			}
			if err := s.announce(ctx, owner, announcement{kind: NoticeLoginRemoved, about: id.ID, always: true}); err != nil {
				return err
			}
		}
		if ident.UUID == "" {
			continue
		}
		if err := record.IgnoreStale(s.db.Idents.Delete(ctx, ident.UUID, ident.Revision)); err != nil {
			return err
		}
	}
	return record.ErrContention()
}

// removeAdded removes the idents that a user has got since a change was requested. Those of the changes are known; others
// are found by an index.
func (s *Service) removeAdded(ctx context.Context, user string, keep []string, c record.AddressChange) error {
	var added []string
	for _, address := range append([]string{c.To}, c.Later...) {
		if address != "" {
			added = append(added, record.AddressIdentity(address).UUID())
		}
	}
	for found, err := range s.db.Idents.Owned(ctx, user) {
		if err != nil {
			return err
		}
		added = append(added, found.UUID)
	}
	for _, ident := range added {
		if slices.Contains(keep, ident) {
			continue
		}
		if err := s.removeYounger(ctx, user, ident, c.At); err != nil {
			return err
		}
	}
	return nil
}

// removeYounger removes an ident if it is of a user, and was added at a time or after it, however often it is written meanwhile. One that
// was restored is as old as what it restores.
func (s *Service) removeYounger(ctx context.Context, user, ident, than string) error {
	for range record.Attempts {
		i, err := s.db.Idents.Read(ctx, ident)
		if err != nil {
			return record.IgnoreNotFound(err)
		}
		created := i.Created
		if i.Proven && i.ProvenAt != "" {
			created = min(created, i.ProvenAt)
		}
		if i.User != user || created < than {
			return nil
		}
		if err = s.db.Idents.Delete(ctx, ident, i.Revision); !errors.Is(err, errs.Mismatch) {
			return record.IgnoreNotFound(err)
		}
	}
	return record.ErrContention()
}

// endUndoing removes a change that was undone. Passkeys are no second factor any more if there is none: a thief may have replaced
// those of the owner by others, which the undoing has removed.
func (s *Service) endUndoing(ctx context.Context, user, change string, restored []string) error {
	_, err := s.db.Users.Change(ctx, user, func(now *record.User) error {
		maps.DeleteFunc(now.Unlinked, func(ident string, _ uint64) bool { return slices.Contains(restored, ident) })
		if now.Unlinked == nil {
			now.Unlinked = map[string]uint64{}
		}
		now.Changes = slices.DeleteFunc(s.changesOf(*now), func(c record.AddressChange) bool { return c.ID == change })
		now.Write(record.FieldUnlinked)
		now.Write(record.FieldChanges)
		if now.Factors.Has(record.FactorPasskey) {
			has, err := s.hasPasskey(ctx, *now)
			if err != nil {
				return err
			}
			if !has {
				now.Factors.Remove(record.FactorPasskey)
			}
		}
		return nil
	})
	return record.IgnoreNotFound(err)
}

// The right to undo a change ends when the address that has it proves itself again: by a login by mail, a recovery, or an undoing.
// What was not confirmed before can't be confirmed any more then: nobody could undo it. It also ends when who has the address, or an
// admin, says that the changes are right; what was not confirmed can be confirmed still.

// withoutRightsOf returns changes without those that an address can undo.
func withoutRightsOf(all []record.AddressChange, address record.Identity) []record.AddressChange {
	return slices.DeleteFunc(slices.Clone(all), func(c record.AddressChange) bool { return !c.Kept && c.HeldBy(address) })
}

// endRights ends the rights of an address of a user, which has proven itself again.
func (s *Service) endRights(ctx context.Context, user record.User, address record.Identity) (record.User, error) {
	if len(s.changesOf(user)) == 0 {
		return user, nil
	}
	return s.db.Users.Change(record.AsService(ctx, user.UUID), user.UUID, func(now *record.User) error {
		now.Changes = withoutRightsOf(s.changesOf(*now), address)
		return nil
	})
}

// KeepChanges ends the right of an address to undo changes, by the token of a mail about one of them: whoever has the address says that
// they are right. It needs no session, and ends none. Errors: those of FinishAddressChange.
func (s *Service) KeepChanges(ctx context.Context, login, token string, from Client) error {
	if err := s.requireEmail(); err != nil {
		return err
	}
	if err := requireTexts("a login and a token are needed", text{"login", login}, text{"token", token}); err != nil {
		return err
	}
	if err := s.guesses.Take(from.Address); err != nil {
		return err
	}
	id := record.AddressIdentity(login)
	v, err := s.verifyToken(ctx, id.ID, token, record.PurposeUndo)
	if err != nil {
		return s.repeatedChange(err, from)
	}
	_, err = s.keepChanges(record.AsService(ctx, v.token.User), v.token.User, event.AuthDetails{Factor: id.UUID(), Reason: "kept"}, func(all []record.AddressChange) error {
		if at := record.ChangeAt(all, v.token.Change); at < 0 || all[at].Undoing {
			return errWrongToken()
		}
		return nil
	}, func(c record.AddressChange) bool { return c.HeldBy(id) })
	if errors.Is(err, errs.NotFound) {
		err = errWrongToken()
	}
	if err != nil {
		return err
	}
	s.guesses.Return(from.Address)
	return ignoreUsed(s.consumeToken(ctx, v, ActKept, from))
}

// KeepChangesFor ends all rights to undo changes of address of a user, as the methods of manage.go. Conflict when there are none;
// NotFound.
func (s *Service) KeepChangesFor(ctx context.Context, uuid string) (store.Stored, error) {
	return s.keepChanges(record.Managing(ctx), uuid, event.AuthDetails{Reason: "admin"}, func(all []record.AddressChange) error {
		if !slices.ContainsFunc(all, func(c record.AddressChange) bool { return !c.Kept && !c.Undoing }) {
			return errs.New(errs.Conflict, "the user has no change of address that can be undone")
		}
		return nil
	}, func(record.AddressChange) bool { return true })
}

// keepChanges marks the changes of a user that which selects as kept, unless check refuses.
func (s *Service) keepChanges(ctx context.Context, uuid string, details event.AuthDetails, check func([]record.AddressChange) error, which func(record.AddressChange) bool) (store.Stored, error) {
	user, err := s.db.Users.Change(ctx, uuid, func(now *record.User) error {
		all := s.changesOf(*now)
		if err := check(all); err != nil {
			return err
		}
		for i, c := range all {
			// One that is being undone is completed by a repetition.
			all[i].Kept = c.Kept || which(c) && !c.Undoing
		}
		now.Changes = all
		now.Publish(s.db.Audit(event.AuthAddressChanged, uuid, details))
		return nil
	})
	return user.Stored, err
}

// Undoable is a change of address that can be undone, as admins see it.
type Undoable struct {
	At   string `json:"at"`
	By   string `json:"by"`           // the address that can undo it
	From string `json:"from"`         // what is restored then
	To   string `json:"to,omitempty"` // absent for a removal
}

// undoable returns the changes of a user that can be undone still.
func (s *Service) undoable(user record.User) (all []Undoable) {
	for _, c := range s.changesOf(user) {
		if c.Holder != "" && !c.Kept {
			all = append(all, Undoable{c.At, c.Holder, c.From, c.To})
		}
	}
	return all
}
