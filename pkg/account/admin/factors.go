package admin

import (
	"context"

	"belfry/pkg/account/notices"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

// ResetFactors removes all second factors and recovery codes of a user on behalf of an admin, as the methods of manage.go:
// for somebody who has lost them. All sessions of the user end, and a new login needs the first factor alone. Nobody does so
// for themselves: a stolen session would weaken its own account past RemoveFactor. NotFound; Conflict for oneself.
func (s *Admin) ResetFactors(ctx context.Context, uuid string) (store.Stored, error) {
	if sessions.IsOneself(ctx, uuid) {
		return store.Stored{}, errs.New(errs.Conflict, "you can't reset your own second factors: remove them one by one in your account, or ask another admin")
	}
	user, err := s.DB.Users.Read(record.Managing(ctx), uuid)
	if err != nil {
		return user.Stored, err
	}
	if err := s.Notices.Announce(record.Managing(ctx), user, notices.Announcement{Kind: notices.NoticeFactorRemoved, Always: true}); err != nil {
		return store.Stored{}, err
	}
	return s.Sessions.ChangeUser(ctx, uuid, func(now *record.User) error {
		now.Factors = record.Factors{}
		now.EndSessions()
		now.Publish(s.DB.Audit(event.AuthFactorRemoved, uuid, event.AuthDetails{Factor: "all", Reason: "reset"}))
		return nil
	})
}
