package links

import (
	"context"

	"belfry/pkg/account/record"
	"belfry/pkg/event"
)

// MarkValidated is validateIdent for an ident that may have been removed meanwhile.
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
		if err := record.IgnoreNotFound(s.DB.Idents.Delete(ctx, ident.UUID, 0, s.DB.AuditIdent(event.AuthLoginUnlinked, user.UUID, ident, record.ReasonRecovery))); err != nil {
			return err
		}
	}
	return nil
}
