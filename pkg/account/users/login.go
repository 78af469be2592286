package users

import (
	"context"

	"belfry/pkg/account/record"
)

// RecordUse stores in an ident when it was used, and resets its failures. An ident that has been deleted is no error.
func (s *Users) RecordUse(ctx context.Context, ident string) error {
	_, err := s.DB.Idents.Change(ctx, ident, func(i *record.Ident) error {
		s.SetUsed(i)
		return nil
	})
	return record.IgnoreNotFound(err)
}

// RecordProviderUse stores in an ident when it was used, and the profile and the tokens that came with it.
func (s *Users) RecordProviderUse(ctx context.Context, ident string, id Identity) (record.Ident, error) {
	return s.DB.Idents.Change(ctx, ident, func(i *record.Ident) error {
		s.SetUsed(i)
		i.Profile = id.Merged(i.Profile).Encode()
		id.setTokens(i)
		return nil
	})
}

func (s *Users) SetUsed(i *record.Ident) {
	i.LastUsed = s.DB.Now()
	i.Failures = record.Failures{At: i.LastUsed}
}
