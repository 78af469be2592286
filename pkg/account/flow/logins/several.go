package logins

import (
	"context"

	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
)

// PendingSecret returns the secret of a login that waits for its second factor, or has been completed.
func (s *Flow) PendingSecret(ctx context.Context, secrets []string) string {
	return secret.FirstValid(secrets, func() func(string) bool {
		return func(secret string) bool {
			_, err := s.DB.Tokens.Get(record.AsService(ctx, ""), pendingUUID(secret))
			return err == nil
		}
	})
}
