package links

import (
	"context"

	"belfry/pkg/account/record"
)

// HasPasskey reports whether a user has a passkey that is not being removed.
func (s *Flow) HasPasskey(ctx context.Context, user record.User) (has bool, err error) {
	all := []string{}
	for ident, err := range s.PasskeysOf(ctx, user.UUID) {
		if err != nil {
			return false, err
		}
		if user.Unlinked[ident.UUID] == 0 {
			all = append(all, ident.UUID)
		}
	}
	return s.Users.AnyOwned(ctx, all, user.UUID)
}
