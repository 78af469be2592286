package users

import (
	"context"

	"belfry/pkg/account/record"
)

// AnyOwned reports whether a user has at least one of some idents. It reads them
// because they were found by an index, which may lag.
func (s *Users) AnyOwned(ctx context.Context, idents []string, user string) (bool, error) {
	for _, uuid := range idents {
		ident, err := s.DB.Idents.Read(ctx, uuid)
		if err == nil && ident.User == user {
			return true, nil
		}
		if record.IgnoreNotFound(err) != nil {
			return false, err
		}
	}
	return false, nil
}
