package links

import (
	"context"
	"errors"

	"belfry/pkg/account/notices"
	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// MarkValidated is Validate for an ident that may have been removed meanwhile.
func (s *Flow) MarkValidated(ctx context.Context, uuid string, proven bool) error {
	return record.IgnoreNotFound(s.Validate(ctx, uuid, proven))
}

// Validate marks the address of an ident as validated, and as proven if the
// owner of the account did it, and resets its failed logins. NotFound if the ident was removed.
func (s *Flow) Validate(ctx context.Context, uuid string, proven bool) error {
	at := ""
	if proven {
		ident, err := s.DB.Idents.Read(record.AsService(ctx, ""), uuid)
		if err == nil {
			at, err = s.DB.ProvenNow(ctx, ident.User)
		}
		if err != nil {
			return err
		}
	}
	_, err := s.DB.Idents.Change(record.AsService(ctx, ""), uuid, func(i *record.Ident) error {
		i.Failures, i.Validated = record.Failures{At: s.DB.Now()}, true
		if proven && !i.Proven {
			i.Proven, i.ProvenAt = true, at
		}
		return nil
	})
	return err
}

// RemoveOtherIdents removes all idents of a user but one.
func (s *Flow) RemoveOtherIdents(ctx context.Context, user record.User, keep string) error {
	ctx = record.AsService(ctx, user.UUID)
	var removed []record.Ident
	_, err := s.DB.Users.Change(ctx, user.UUID, func(now *record.User) error {
		now.Unlinked, removed = map[string]uint64{}, nil
		for ident, err := range s.DB.Idents.Owned(ctx, user.UUID) {
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
		if err := record.IgnoreNotFound(s.DB.Idents.Store.Delete(ctx, ident.UUID, 0,
			s.DB.AuditIdent(event.AuthLoginUnlinked, user.UUID, ident, record.ReasonRecovery))); err != nil {
			return err
		}
	}
	return nil
}

// Restore restores the ident of a user's address. A stranger may have registered the address since, without having its
// mailbox. The ident gets another revision in any case, so that a confirmation in progress does not remove it.
func (s *Flow) Restore(ctx context.Context, user string, id record.Identity, since string) error {
	again := id.Ident()
	again.User, again.ProvenAt = user, since
	for range record.Attempts {
		_, err := s.DB.Idents.Create(ctx, id.UUID(), again)
		if err == nil {
			return nil
		}
		if !errors.Is(err, errs.Exists) {
			return err
		}
		owner, ident, err := s.DB.FindOwner(ctx, id)
		switch {
		case err != nil:
			return err
		case owner.UUID == user:
			if err := s.Validate(ctx, ident.UUID, true); !errors.Is(err, errs.NotFound) {
				return err
			}
			continue // it was removed meanwhile
		case owner.UUID != "" && ident.Proven:
			return id.ErrTaken()
		case owner.UUID != "":
			if _, err := s.Sessions.EndAll(ctx, owner.UUID); record.IgnoreNotFound(err) != nil {
				return err
			}
			if err := s.Notices.Announce(ctx, owner,
				notices.Announcement{Kind: notices.NoticeLoginRemoved, About: id.ID, Always: true}); err != nil {
				return err
			}
		}
		if ident.UUID == "" {
			continue
		}
		if err := record.IgnoreStale(s.DB.Idents.Store.Delete(ctx, ident.UUID, ident.Revision)); err != nil {
			return err
		}
	}
	return record.ErrContention()
}

// RemoveYounger removes an ident of a user that was added at a time or later, even if it is written meanwhile. A
// restored ident is as old as the original one.
func (s *Flow) RemoveYounger(ctx context.Context, user, ident, than string) error {
	for range record.Attempts {
		i, err := s.DB.Idents.Read(ctx, ident)
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
		if err = s.DB.Idents.Store.Delete(ctx, ident, i.Revision); !errors.Is(err, errs.Mismatch) {
			return record.IgnoreNotFound(err)
		}
	}
	return record.ErrContention()
}
