package sessions

import (
	"context"

	"belfry/pkg/account/record"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

// EndAll ends all sessions and API keys of a user, and the tokens of recovery mails, atomically:
// also those that an index does not find yet. NotFound.
func (s *Sessions) EndAll(ctx context.Context, uuid string) (store.Stored, error) {
	return s.ChangeUser(ctx, uuid, func(user *record.User) error {
		user.EndSessions()
		user.Publish(s.DB.Audit(event.AuthSessionsEnded, user.UUID, event.AuthDetails{Reason: record.ReasonRevoked}))
		return nil
	})
}
