package auth

import (
	"context"
	"errors"
	"slices"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// undoChange gives the account back to who has the old address. One write of the user ends all sessions, removes the
// password, and ends this change and all that came after it, with their tokens: those of a thief's own mailbox
// too, and a deletion that was planned since. Then the old ident is restored, and those are removed that were added since the change was requested.
func (s *Service) undoChange(ctx context.Context, id identity, v verifiedToken) error {
	user, err := s.users.Get(asService(ctx, ""), v.token.User)
	if errors.Is(err, errs.NotFound) || err == nil && IsDisabled(user) {
		return errWrongToken()
	}
	if err != nil {
		return err
	}
	ctx = asService(ctx, user.UUID)
	if owner, ident, err := s.findOwner(ctx, id); err != nil {
		return err
	} else if owner.UUID != "" && owner.UUID != user.UUID && isProven(ident) && changeAt(s.changesOf(user.Body), v.token.Change) >= 0 {
		return id.errTaken()
	}
	change, err := s.beginUndoing(ctx, user.UUID, v.token.Change, id)
	if err != nil {
		return err
	}
	if err := s.restoreIdent(ctx, user.UUID, id); err != nil {
		return err
	}
	if err := s.removeAdded(ctx, user.UUID, id, change); err != nil {
		return err
	}
	if err := s.endUndoing(ctx, user.UUID, change.ID, id.uuid()); err != nil {
		return err
	}
	// Without the change the token is of no use any more.
	if err := ignoreUsed(s.consumeToken(ctx, v)); err != nil {
		s.log.WarnContext(ctx, "auth: removing the token of an undone change of address failed; it is of no use", "error", err)
	}
	s.accounts.succeed(id.uuid())
	if err := s.enqueueMailAs(ctx, id.providerID, recoveryMailbox, purposeRecover); err != nil {
		s.log.WarnContext(ctx, "auth: requesting a recovery mail failed; the user can request another", "error", err)
	}
	return nil
}

// beginUndoing makes the write that decides an undoing.
func (s *Service) beginUndoing(ctx context.Context, user, id string, address identity) (change addressChange, err error) {
	_, err = s.users.Mutate(ctx, user, func(now store.Stored) (store.Mutation, error) {
		all := s.changesOf(now.Body)
		at := changeAt(all, id)
		if at < 0 {
			return store.Mutation{}, errWrongToken()
		}
		if change = all[at]; change.Undoing {
			return store.Mutation{}, nil
		}
		o, err := now.Object()
		if err != nil {
			return store.Mutation{}, err
		}
		change.Undoing = true
		for _, later := range all[at+1:] {
			change.Later = append(append(change.Later, later.To), later.Later...)
		}
		fields := passwordFields(o, "").Merge(factorsOf(now.Body).addedBefore(change.At).fields())
		fields.Set(fieldChanges, append(all[:at:at], change))
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

// restoreIdent gives a user the ident of an address again. A stranger may have registered the address since without
// having it. The ident gets another revision in any case, so that a confirmation in progress does not remove it.
func (s *Service) restoreIdent(ctx context.Context, user string, id identity) error {
	fields := id.identFields()
	fields.Set(fieldUser, user)
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
			return s.markValidated(ctx, ident.UUID, true)
		case owner.UUID != "" && isProven(ident):
			return id.errTaken()
		case owner.UUID != "":
			if _, err := s.EndSessions(ctx, owner.UUID); ignoreNotFound(err) != nil {
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
func (s *Service) removeAdded(ctx context.Context, user string, keep identity, c addressChange) error {
	var added []string
	for _, address := range append([]string{c.To}, c.Later...) {
		added = append(added, emailIdentity(address).uuid())
	}
	err := forEachOwned(ctx, s.idents, user, func(found store.Stored, o object.Object) error {
		if created, _ := o.Text("created"); created >= c.At {
			added = append(added, found.UUID)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, ident := range added {
		if ident == keep.uuid() {
			continue
		}
		if err := s.removeOwned(ctx, user, ident); err != nil {
			return err
		}
	}
	return nil
}

// removeOwned removes an ident if it is of a user, however often it is written meanwhile.
func (s *Service) removeOwned(ctx context.Context, user, ident string) error {
	for range maxAttempts {
		stored, err := s.idents.Get(ctx, ident)
		if err != nil {
			return ignoreNotFound(err)
		}
		if owner, _ := object.Text(object.Field(stored.Body, fieldUser)); owner != user {
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
func (s *Service) endUndoing(ctx context.Context, user, change, ident string) error {
	_, err := s.users.Mutate(ctx, user, func(now store.Stored) (store.Mutation, error) {
		unlinked := unlinkedOf(now.Body)
		delete(unlinked, ident)
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
