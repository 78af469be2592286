package admin

import (
	"context"

	"belfry/pkg/account/keys"
	"belfry/pkg/account/notices"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/store"
)

// IssueKey makes an API key for a user on behalf of an admin, as the methods of manage.go.
func (s *Admin) IssueKey(ctx context.Context, stored store.Stored, k keys.New) (keys.Info, string, error) {
	if err := s.Keys.ValidateKey(k); err != nil {
		return keys.Info{}, "", err
	}
	user, err := s.DB.Users.Of(stored)
	if err != nil {
		return keys.Info{}, "", err
	}
	if err := s.Notices.Announce(record.Managing(ctx), user, notices.Announcement{Kind: notices.NoticeKeyAdded, About: k.Name, Always: true}); err != nil {
		return keys.Info{}, "", err
	}
	return s.Keys.SaveKey(record.Managing(ctx), k, user, sessions.Client{})
}

// EndKey ends an API key of a user on behalf of an admin, as the methods of manage.go.
func (s *Admin) EndKey(ctx context.Context, user, id string) error {
	return s.Keys.RevokeKey(record.Managing(ctx), user, id)
}
