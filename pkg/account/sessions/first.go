package sessions

import (
	"context"

	"belfry/pkg/account/record"
)

// IsAdminUser reports whether a user is an admin by the rule of the configuration.
func (s *Sessions) IsAdminUser(ctx context.Context, user record.User) (bool, error) {
	seen, err := s.SeenByRules(user)
	return err == nil && s.Admins.Holds(ctx, seen), err
}
