package account

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// undoChange gives the account back to who has the address that was proven longest when the change was requested. One write of the
// user ends all sessions, removes the password, and ends this change and all others that the address can undo or that came after
// it, with their tokens: those of a thief's own mailbox too, and a deletion that was planned since. Then the addresses of before are
// restored, and the idents are removed that were added since the change was requested. What is older than the change stays.
func (s *Service) undoChange(ctx context.Context, id identity, v verifiedToken, from Client) error {
	user, err := s.users.Get(asService(ctx, ""), v.token.User)
	if errors.Is(err, errs.NotFound) || err == nil && IsDisabled(user) {
		return errWrongToken()
	}
	if err != nil {
		return err
	}
	ctx = asService(ctx, user.UUID)
	all := s.changesOf(user.Body)
	if at := changeAt(all, v.token.Change); at >= 0 { // else it ends below, or continues an undoing that was interrupted
		owner, ident, err := s.findOwner(ctx, id)
		if err != nil {
			return err
		}
		if owner.UUID != "" && owner.UUID != user.UUID && isProven(ident) {
			return id.errTaken()
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
	s.accounts.succeed(id.uuid())
	if err := s.enqueueMailAs(ctx, id.providerID, recoveryMailbox, purposeRecover); err != nil {
		s.log.WarnContext(ctx, "auth: requesting a recovery mail failed; the user can request another", "error", err)
	}
	return nil
}

// mayUndo reports whether an address has the right to undo a change. A release that did not know who has the right gave it to the
// address that was replaced; of such a change it has the right still if no other address of the account is older than the change.
func (s *Service) mayUndo(ctx context.Context, user store.Stored, c addressChange, address identity) (bool, error) {
	switch {
	case c.Kept:
		return false, nil
	case c.Holder != "":
		return c.Holder == address.providerID, nil
	case c.Ident != address.uuid():
		return false, nil
	}
	found, err := s.standingsOf(ctx, user)
	older := slices.ContainsFunc(found.all, func(a standing) bool {
		return a.address != address.providerID && a.since != "" && a.since < c.At
	})
	return !older, err
}

// beginUndoing makes the write that decides an undoing.
func (s *Service) beginUndoing(ctx context.Context, user, id string, address identity) (change addressChange, err error) {
	_, err = s.users.Mutate(ctx, user, func(now store.Stored) (store.Mutation, error) {
		all := s.changesOf(now.Body)
		at := changeAt(all, id)
		if at < 0 {
			return store.Mutation{}, errWrongToken()
		}
		change = all[at]
		if may, err := s.mayUndo(ctx, now, change, address); !may || err != nil {
			return store.Mutation{}, cmp.Or(err, errWrongToken())
		}
		if change.Undoing {
			return store.Mutation{}, nil
		}
		o, err := now.Object()
		if err != nil {
			return store.Mutation{}, err
		}
		change.Undoing = true
		for _, later := range all[at+1:] {
			change.Later = append(append(change.Later, later.To), later.Later...)
			if later.Since != "" && later.Since < change.At {
				change.Restore = append(change.Restore, formerAddress{later.From, later.Since})
			}
		}
		left := withoutRightsOf(all[:at:at], address)
		fields := passwordFields(o, "", false).Merge(factorsOf(now.Body).addedBefore(change.At).fields()).Merge(forgetDevices(o))
		fields.Set(fieldChanges, append(left, change))
		events := []store.ExtraEvent{s.audit(event.AuthAddressChanged, user, event.AuthDetails{Factor: address.uuid(), Reason: "undone"})}
		if plan := planOf(o); plan != nil && plan.Planned >= change.At { // its notice has reached the thief, if there is one
			fields = fields.Merge(noPlan())
			events = append(events, s.audit(event.AuthDeletionUndone, user, event.AuthDetails{Reason: "undone"}))
		}
		return store.Mutation{Fields: fields, ExtraEvents: events}, nil
	})
	if errors.Is(err, errs.NotFound) {
		err = errWrongToken()
	}
	return change, err
}

// restoreIdents gives a user the addresses of before a change again, and returns the uuids of their idents: that of who undoes it, and
// others unless they belong to somebody else by now.
func (s *Service) restoreIdents(ctx context.Context, user string, id identity, c addressChange) (restored []string, err error) {
	since := map[string]string{id.providerID: ""}
	for _, former := range append(c.Restore, formerAddress{c.From, c.Since}) {
		if former.Since != "" {
			since[former.Address] = former.Since
		}
	}
	for _, address := range slices.Sorted(maps.Keys(since)) {
		again := emailIdentity(address)
		again.validated = true
		err := s.restoreIdent(ctx, user, again, since[address])
		switch {
		case err == nil:
			restored = append(restored, again.uuid())
		case address == id.providerID || !errors.Is(err, errs.Exists):
			return nil, err
		}
	}
	return restored, nil
}

// restoreIdent gives a user the ident of an address again. A stranger may have registered the address since without
// having it. The ident gets another revision in any case, so that a confirmation in progress does not remove it.
func (s *Service) restoreIdent(ctx context.Context, user string, id identity, since string) error {
	fields := id.identFields()
	fields.Set(fieldUser, user)
	if since != "" {
		fields.Set(fieldProvenAt, since)
	}
	for range maxAttempts {
		_, err := s.idents.Save(ctx, fields, id.uuid())
		if err == nil {
			return nil
		}
		if !errors.Is(err, errs.Exists) {
			return err
		}
		owner, ident, err := s.findOwner(ctx, id)
		switch {
		case err != nil:
			return err
		case owner.UUID == user:
			if err := s.validateIdent(ctx, ident.UUID, true); !errors.Is(err, errs.NotFound) {
				return err
			}
			continue // it was removed meanwhile
		case owner.UUID != "" && isProven(ident):
			return id.errTaken()
		case owner.UUID != "":
			if _, err := s.EndSessions(ctx, owner.UUID); ignoreNotFound(err) != nil {
				return err
			}
			if err := s.announce(ctx, owner, announcement{kind: NoticeLoginRemoved, about: id.providerID, always: true}); err != nil {
				return err
			}
		}
		if ident.UUID == "" {
			continue
		}
		if err := ignoreStale(s.idents.Delete(ctx, ident.UUID, ident.Revision)); err != nil {
			return err
		}
	}
	return errContention()
}

// removeAdded removes the idents that a user has got since a change was requested. Those of the changes are known; others
// are found by an index.
func (s *Service) removeAdded(ctx context.Context, user string, keep []string, c addressChange) error {
	var added []string
	for _, address := range append([]string{c.To}, c.Later...) {
		if address != "" {
			added = append(added, emailIdentity(address).uuid())
		}
	}
	err := forEachOwned(ctx, s.idents, user, func(found store.Stored, _ object.Object) error {
		added = append(added, found.UUID)
		return nil
	})
	if err != nil {
		return err
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
	for range maxAttempts {
		stored, err := s.idents.Get(ctx, ident)
		if err != nil {
			return ignoreNotFound(err)
		}
		o, err := stored.Object()
		if err != nil {
			return err
		}
		created, _ := o.Text("created")
		if restored, _ := o.Text(fieldProvenAt); restored != "" && string(o[fieldProven]) == "true" && restored < created {
			created = restored
		}
		if owner, _ := o.Text(fieldUser); owner != user || created < than {
			return nil
		}
		if err = s.idents.Delete(ctx, ident, stored.Revision); !errors.Is(err, errs.Mismatch) {
			return ignoreNotFound(err)
		}
	}
	return errContention()
}

// endUndoing removes a change that was undone. Passkeys are no second factor any more if there is none: a thief may have replaced
// those of the owner by others, which the undoing has removed.
func (s *Service) endUndoing(ctx context.Context, user, change string, restored []string) error {
	_, err := s.users.Mutate(ctx, user, func(now store.Stored) (store.Mutation, error) {
		unlinked := unlinkedOf(now.Body)
		maps.DeleteFunc(unlinked, func(ident string, _ uint64) bool { return slices.Contains(restored, ident) })
		fields := object.Object{}
		fields.Set(fieldChanges, slices.DeleteFunc(s.changesOf(now.Body), func(c addressChange) bool { return c.ID == change }))
		fields.Set(fieldUnlinked, unlinked)
		if f := factorsOf(now.Body); f.Passkey != nil {
			has, err := s.hasPasskey(ctx, now)
			if err != nil {
				return store.Mutation{}, err
			}
			if !has {
				f.Passkey = nil
				fields = fields.Merge(f.fields())
			}
		}
		return store.Mutation{Fields: fields}, nil
	})
	return ignoreNotFound(err)
}

// The right to undo a change ends when the address that has it proves itself again: by a login by mail, a recovery, or an undoing.
// What was not confirmed before can't be confirmed any more then: nobody could undo it. It also ends when who has the address, or an
// admin, says that the changes are right; what was not confirmed can be confirmed still.

// withoutRightsOf returns changes without those that an address can undo.
func withoutRightsOf(all []addressChange, address identity) []addressChange {
	return slices.DeleteFunc(slices.Clone(all), func(c addressChange) bool { return !c.Kept && c.heldBy(address) })
}

// heldBy reports whether an address may have the right to undo a change.
func (c addressChange) heldBy(address identity) bool {
	return c.Holder == address.providerID || c.Holder == "" && c.Ident == address.uuid()
}

// endRights ends the rights of an address of a user, which has proven itself again.
func (s *Service) endRights(ctx context.Context, user store.Stored, address identity) (store.Stored, error) {
	if len(s.changesOf(user.Body)) == 0 {
		return user, nil
	}
	return s.users.Mutate(asService(ctx, user.UUID), user.UUID, func(now store.Stored) (store.Mutation, error) {
		fields := object.Object{}
		fields.Set(fieldChanges, withoutRightsOf(s.changesOf(now.Body), address))
		return store.Mutation{Fields: fields}, nil
	})
}

// KeepChanges ends the right of an address to undo changes, by the token of a mail about one of them: whoever has the address says that
// they are right. It needs no session, and ends none. Errors: those of FinishAddressChange.
func (s *Service) KeepChanges(ctx context.Context, login, token string, from Client) error {
	if err := s.requireEmail(); err != nil {
		return err
	}
	if err := requireTexts("a login and a token are needed", text{fieldLogin, login}, text{"token", token}); err != nil {
		return err
	}
	if err := s.takeAttempt(from); err != nil {
		return err
	}
	id := emailIdentity(login)
	v, err := s.verifyToken(ctx, id.providerID, token, purposeUndo)
	if err != nil {
		return s.repeatedChange(err, from)
	}
	_, err = s.keepChanges(asService(ctx, v.token.User), v.token.User, event.AuthDetails{Factor: id.uuid(), Reason: "kept"}, func(all []addressChange) error {
		if at := changeAt(all, v.token.Change); at < 0 || all[at].Undoing {
			return errWrongToken()
		}
		return nil
	}, func(c addressChange) bool { return c.heldBy(id) })
	if errors.Is(err, errs.NotFound) {
		err = errWrongToken()
	}
	if err != nil {
		return err
	}
	s.returnAttempt(from)
	return ignoreUsed(s.consumeToken(ctx, v, ActKept, from))
}

// KeepChangesFor ends all rights to undo changes of address of a user, as the methods of manage.go. Conflict when there are none;
// NotFound.
func (s *Service) KeepChangesFor(ctx context.Context, uuid string) (store.Stored, error) {
	return s.keepChanges(managing(ctx), uuid, event.AuthDetails{Reason: "admin"}, func(all []addressChange) error {
		if !slices.ContainsFunc(all, func(c addressChange) bool { return !c.Kept && !c.Undoing }) {
			return errs.New(errs.Conflict, "the user has no change of address that can be undone")
		}
		return nil
	}, func(addressChange) bool { return true })
}

// keepChanges marks the changes of a user that which selects as kept, unless check refuses.
func (s *Service) keepChanges(ctx context.Context, uuid string, details event.AuthDetails, check func([]addressChange) error, which func(addressChange) bool) (store.Stored, error) {
	return s.users.Mutate(ctx, uuid, func(now store.Stored) (store.Mutation, error) {
		all := s.changesOf(now.Body)
		if err := check(all); err != nil {
			return store.Mutation{}, err
		}
		for i, c := range all {
			// One that is being undone is completed by a repetition.
			all[i].Kept = c.Kept || which(c) && !c.Undoing
		}
		fields := object.Object{}
		fields.Set(fieldChanges, all)
		return store.Mutation{Fields: fields, ExtraEvents: []store.ExtraEvent{s.audit(event.AuthAddressChanged, uuid, details)}}, nil
	})
}

// Undoable is a change of address that can be undone, as admins see it.
type Undoable struct {
	At   string `json:"at"`
	By   string `json:"by"`           // the address that can undo it
	From string `json:"from"`         // what is restored then
	To   string `json:"to,omitempty"` // absent for a removal
}

// undoable returns the changes of a user that can be undone still.
func (s *Service) undoable(user []byte) (all []Undoable) {
	for _, c := range s.changesOf(user) {
		if c.Holder != "" && !c.Kept {
			all = append(all, Undoable{c.At, c.Holder, c.From, c.To})
		}
	}
	return all
}
