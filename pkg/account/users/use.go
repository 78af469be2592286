package users

import (
	"cmp"
	"context"
	"strings"
	"time"

	"belfry/pkg/account/record"
)

// RecordUse stores in an ident when it was used, and resets its failures until then. An ident that has been deleted is
// not an error.
func (s *Users) RecordUse(ctx context.Context, ident string, at time.Time) error {
	_, err := s.DB.Idents.Change(ctx, ident, func(i *record.Ident) error {
		SetUsed(i, at)
		return nil
	})
	return record.IgnoreNotFound(err)
}

// RecordProviderUse stores in an ident when it was used, and the profile and the tokens that came with it.
func (s *Users) RecordProviderUse(ctx context.Context, ident string, id Identity, at time.Time) (record.Ident, error) {
	return s.DB.Idents.Change(ctx, ident, func(i *record.Ident) error {
		SetUsed(i, at)
		i.Profile = id.Merged(i.Profile).Encode()
		id.setTokens(i)
		return nil
	})
}

// SetUsed sets in an ident when it was used, and resets its failures until then. It is often written after the login: a
// later use stays, and so do guesses that have failed since.
func SetUsed(i *record.Ident, at time.Time) {
	if !isLater(i.LastUsed, at) {
		i.LastUsed = at
	}
	if !isLater(i.Failures.At, at) {
		i.Failures = record.Failures{At: at}
	}
}

// isLater reports whether a time is after another. One that is long after it is from before the clock was set back.
func isLater(t, than time.Time) bool {
	later := t.Sub(than)
	return later > 0 && later <= record.ClockTolerance
}

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

// maxNamed is how many idents of a user are read to find an address.
const maxNamed = 10

// Address returns the e-mail address with which a user logs in, or else the uuid of another ident; "" for a user
// without idents. It identifies the user to people, because users can choose their other fields.
func (s *Users) Address(ctx context.Context, user string) (string, error) {
	other, read := "", 0
	for ident, err := range s.DB.Idents.Owned(record.AsService(ctx, ""), user) {
		if err != nil {
			return "", err
		}
		if address, isEmail := strings.CutSuffix(ident.UUID, "_email"); isEmail {
			return address, nil
		}
		other = cmp.Or(other, ident.UUID)
		if read++; read == maxNamed {
			break
		}
	}
	return other, nil
}

// FirstAdminUUID is the uuid of the record of links for the first admin. The uuid of a mailbox ends with its kind.
const FirstAdminUUID = "first-admin"

// EndFirstAdmin removes all links. It is called before a user becomes an admin.
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
