package addresses

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"belfry/pkg/account/flow/changes"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

// undoChange returns the account to the owner of the address that had been proven longest when the change was
// requested. One write of the user
//
//   - ends all sessions and removes the password
//   - ends this change, all others that the address can undo, and all later ones, with their tokens, even those in a
//     thief's own mailbox
//   - ends a deletion that was planned since
//
// Then undoChange restores the former addresses, and removes the idents that were added since the change was requested.
// Idents that are older than the change stay.
func (s *Flow) undoChange(ctx context.Context, id record.Identity, v post.VerifiedToken, from sessions.Client) error {
	user, err := s.DB.Users.Read(record.AsService(ctx, ""), v.Token.User)
	if errors.Is(err, errs.NotFound) || err == nil && user.MarkedDisabled {
		return post.TokenError()
	}
	if err != nil {
		return err
	}
	ctx = record.AsService(ctx, user.UUID)
	all := s.Changes.ChangesOf(user)
	// Otherwise the call ends below, or continues an interrupted undoing.
	if at := record.ChangeAt(all, v.Token.Change); at >= 0 {
		owner, ident, err := s.DB.FindOwner(ctx, id)
		if err != nil {
			return err
		}
		if owner.UUID != "" && owner.UUID != user.UUID && ident.Proven {
			return id.ErrTaken()
		}
		// The present user may be the owner of the account, and the mailbox may meanwhile belong to somebody else.
		may, err := s.mayUndo(ctx, user, all[at], id)
		if err == nil && may {
			err = s.Notices.AnnounceToOwner(ctx, user, id)
		}
		if err != nil {
			return err
		}
	}
	change, err := s.beginUndoing(ctx, user.UUID, v.Token.Change, id)
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
	// Without the change the token is useless.
	if err := post.IgnoreUsed(s.Post.Consume(ctx, v, record.ActUndone, from)); err != nil {
		s.Log.WarnContext(ctx, "auth: removing the token of an undone change of address failed; the token is useless",
			"error", err)
	}
	s.Guesses.Accounts.Succeed(id.UUID())
	if err := s.Post.EnqueueAs(ctx, id.ID, post.RecoveryMailbox, record.PurposeRecover); err != nil {
		s.Log.WarnContext(ctx, "auth: requesting a recovery mail failed; the user can request another", "error", err)
	}
	return nil
}

// mayUndo reports whether an address has the right to undo a change. An earlier release did not record the holder of
// the right, and gave it to the address that was replaced. That address keeps it if no other address of the account is
// older than the change.
func (s *Flow) mayUndo(ctx context.Context, user record.User, c record.AddressChange,
	address record.Identity) (bool, error) {
	switch {
	case c.Kept:
		return false, nil
	case c.Holder != "":
		return c.Holder == address.ID, nil
	case c.Ident != address.UUID():
		return false, nil
	}
	found, err := s.DB.StandingsOf(ctx, user)
	older := slices.ContainsFunc(found.All, func(a record.Standing) bool {
		return a.Address != address.ID && a.Since != "" && a.Since < c.At
	})
	return !older, err
}

// beginUndoing makes the write that commits an undoing.
func (s *Flow) beginUndoing(ctx context.Context, user, id string,
	address record.Identity) (change record.AddressChange, err error) {
	_, err = s.DB.Users.Change(ctx, user, func(now *record.User) error {
		all := s.Changes.ChangesOf(*now)
		at := record.ChangeAt(all, id)
		if at < 0 {
			return post.TokenError()
		}
		change = all[at]
		if may, err := s.mayUndo(ctx, *now, change, address); !may || err != nil {
			return cmp.Or(err, post.TokenError())
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
		now.Changes = append(changes.WithoutRightsOf(all[:at:at], address), change)
		now.Publish(s.DB.Audit(event.AuthAddressChanged, user,
			event.AuthDetails{Factor: address.UUID(), Reason: "undone"}))
		// If there is a thief, the notice went to the thief.
		if plan := now.Plan(); plan != nil && plan.Planned >= change.At {
			now.EndPlan()
			now.Publish(s.DB.Audit(event.AuthDeletionUndone, user, event.AuthDetails{Reason: "undone"}))
		}
		return nil
	})
	if errors.Is(err, errs.NotFound) {
		err = post.TokenError()
	}
	return change, err
}

// restoreIdents restores the addresses that a user had before a change, and returns the uuids of their idents: the
// address that undoes the change, and others unless they meanwhile belong to somebody else.
func (s *Flow) restoreIdents(ctx context.Context, user string, id record.Identity,
	c record.AddressChange) (restored []string, err error) {
	since := map[string]string{id.ID: ""}
	for _, former := range append(c.Restore, record.FormerAddress{Address: c.From, Since: c.Since}) {
		if former.Since != "" {
			since[former.Address] = former.Since
		}
	}
	for _, address := range slices.Sorted(maps.Keys(since)) {
		again := record.AddressIdentity(address)
		again.Validated = true
		err := s.Links.Restore(ctx, user, again, since[address])
		switch {
		case err == nil:
			restored = append(restored, again.UUID())
		case address == id.ID || !errors.Is(err, errs.Exists):
			return nil, err
		}
	}
	return restored, nil
}

// removeAdded removes the idents that were added to a user since a change was requested. The idents of changes are
// known; others are found by an index.
func (s *Flow) removeAdded(ctx context.Context, user string, keep []string, c record.AddressChange) error {
	var added []string
	for _, address := range append([]string{c.To}, c.Later...) {
		if address != "" {
			added = append(added, record.AddressIdentity(address).UUID())
		}
	}
	for found, err := range s.DB.Idents.Owned(ctx, user) {
		if err != nil {
			return err
		}
		added = append(added, found.UUID)
	}
	for _, ident := range added {
		if slices.Contains(keep, ident) {
			continue
		}
		if err := s.Links.RemoveYounger(ctx, user, ident, c.At); err != nil {
			return err
		}
	}
	return nil
}

// endUndoing removes an undone change. If the user has no passkey left, passkeys are no longer a second factor: a thief
// may have replaced the owner's passkeys by others, which the undoing has removed.
func (s *Flow) endUndoing(ctx context.Context, user, change string, restored []string) error {
	_, err := s.DB.Users.Change(ctx, user, func(now *record.User) error {
		maps.DeleteFunc(now.Unlinked, func(ident string, _ uint64) bool { return slices.Contains(restored, ident) })
		if now.Unlinked == nil {
			now.Unlinked = map[string]uint64{}
		}
		now.Changes = slices.DeleteFunc(s.Changes.ChangesOf(*now),
			func(c record.AddressChange) bool { return c.ID == change })
		now.Write(record.FieldUnlinked)
		now.Write(record.FieldChanges)
		if now.Factors.Has(record.FactorPasskey) {
			has, err := s.Links.HasPasskey(ctx, *now)
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

// KeepChanges ends the right of an address to undo changes, by the token of a mail about one of them: the owner of the
// address confirms the changes. It neither needs nor ends a session. Errors: those of Finish.
func (s *Flow) KeepChanges(ctx context.Context, login, token string, from sessions.Client) error {
	if err := s.Post.RequireEmail(); err != nil {
		return err
	}
	if err := sessions.RequireTexts("a login and a token are needed", "login", login, "token", token); err != nil {
		return err
	}
	if err := s.Guesses.Take(from.Address); err != nil {
		return err
	}
	id := record.AddressIdentity(login)
	v, err := s.Post.Verify(ctx, id.ID, token, record.PurposeUndo)
	if err != nil {
		return s.Changes.RepeatedChange(err, from)
	}
	_, err = s.MarkKept(record.AsService(ctx, v.Token.User), v.Token.User,
		event.AuthDetails{Factor: id.UUID(), Reason: "kept"}, func(all []record.AddressChange) error {
			if at := record.ChangeAt(all, v.Token.Change); at < 0 || all[at].Undoing {
				return post.TokenError()
			}
			return nil
		}, func(c record.AddressChange) bool { return c.HeldBy(id) })
	if errors.Is(err, errs.NotFound) {
		err = post.TokenError()
	}
	if err != nil {
		return err
	}
	s.Guesses.Return(from.Address)
	return post.IgnoreUsed(s.Post.Consume(ctx, v, record.ActKept, from))
}

// MarkKept marks as kept the changes of a user for which `which` reports true, unless check refuses.
func (s *Flow) MarkKept(ctx context.Context, uuid string, details event.AuthDetails,
	check func([]record.AddressChange) error, which func(record.AddressChange) bool) (store.Stored, error) {
	user, err := s.DB.Users.Change(ctx, uuid, func(now *record.User) error {
		all := s.Changes.ChangesOf(*now)
		if err := check(all); err != nil {
			return err
		}
		for i, c := range all {
			// A change that is being undone is completed by a repetition.
			all[i].Kept = c.Kept || which(c) && !c.Undoing
		}
		now.Changes = all
		now.Publish(s.DB.Audit(event.AuthAddressChanged, uuid, details))
		return nil
	})
	return user.Stored, err
}
