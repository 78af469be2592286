package enrollment

import (
	"context"

	"belfry/pkg/account/method/recoverycodes"
	"belfry/pkg/account/notices"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// RenewRecoveryCodes replaces the recovery codes of the user who is logged in, and returns the new ones, which are stored
// nowhere. Conflict without a second factor.
func (s *Flow) RenewRecoveryCodes(ctx context.Context, me *sessions.Session) (codes []string, err error) {
	if err := s.Sessions.RequireFresh(ctx, me); err != nil {
		return nil, err
	}
	none := errs.New(errs.Conflict, "recovery codes take the place of a second factor: add one first")
	if !me.User.Factors.Any() {
		return nil, none
	}
	if err := s.Notices.Announce(record.AsService(ctx, me.User.UUID), me.User, notices.Announcement{Kind: notices.NoticeRecoveryCodes}); err != nil {
		return nil, err
	}
	at := record.Timestamp(s.DB.Now())
	err = s.changeFactors(ctx, me, func(now *record.User) error {
		if !now.Factors.Any() {
			return none
		}
		codes, now.Factors.RecoveryCreated = recoverycodes.Renew(now), at
		now.Publish(s.DB.Audit(event.AuthRecoveryCodes, me.User.UUID, event.AuthDetails{Session: me.ID}))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return codes, nil
}
