package users

import (
	"context"

	"belfry/pkg/account/record"
)

const (
	// FirstAdminUUID is the uuid of the record. That of a mailbox ends with its kind.
	FirstAdminUUID = "first-admin"
)

// EndFirstAdmin removes all links. Whoever makes an admin calls it before.
func (s *Users) EndFirstAdmin(ctx context.Context) error {
	_, err := s.DB.Links().Change(ctx, FirstAdminUUID, func(m *record.Mailbox) error {
		if len(m.Tokens) == 0 {
			return record.ErrUnchanged
		}
		m.Tokens = nil
		return nil
	})
	return record.IgnoreNotFound(err)
}
