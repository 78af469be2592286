package record

import (
	"context"
	"errors"
	"maps"

	"belfry/pkg/account/secret"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// Email is the provider whose identities are e-mail addresses.
const Email = "email"

// Identity is a user's identity for a provider. An ident represents it.
type Identity struct {
	ID        string // the provider's id of the user
	Provider  string
	Profile   object.Object
	Once      []string // fields of the profile that the provider sends once
	Validated bool
}

// AddressIdentity is the identity of an address. Text that is not an address
// belongs to no user and is not changed: its lower case could be an address.
func AddressIdentity(login string) Identity {
	address, err := KnownAddress(login)
	if err != nil {
		address = login
	}
	profile := object.Object{}
	profile.Set(Email, address)
	return Identity{ID: address, Provider: Email, Profile: profile}
}

// UUID is the uuid of the ident.
func (id Identity) UUID() string { return IdentUUID(id.ID, id.Provider) }

// IdentUUID is the uuid of the ident of a provider's user. An id that is not a valid uuid is represented by its hash.
func IdentUUID(id, provider string) string {
	if uuid := id + "_" + provider; object.ValidUUID(uuid) {
		return uuid
	}
	return secret.Hex(id) + "_" + provider
}

// Ident returns the ident, without its user.
func (id Identity) Ident() Ident {
	return Ident{Type: id.Provider, Profile: id.Profile.Encode(), Validated: id.Validated, Proven: id.Validated,
		ID: id.ID}
}

// Merged is the profile, with the fields of the stored one that the provider sends once.
func (id Identity) Merged(stored []byte) object.Object {
	before, err := object.Decode(stored)
	if err != nil {
		return id.Profile
	}
	profile := maps.Clone(id.Profile)
	for _, name := range id.Once {
		if profile[name] == nil && before[name] != nil {
			profile[name] = before[name]
		}
	}
	return profile
}

// matches reports Denied for an ident of another identity with the same uuid:
// providers choose their ids, and a_b at c has the uuid of a at b_c.
func (id Identity) matches(ident Ident) error {
	if ident.ID != id.ID || ident.Type != id.Provider {
		return errs.New(errs.Denied, "the login has the same uuid as that of another provider's user")
	}
	return nil
}

// ErrTaken returns the error for an identity that belongs to another user.
func (id Identity) ErrTaken() error {
	return errs.New(errs.Exists, "there is already an account with this login")
}

// FindOwner returns the user that an identity belongs to, and the ident. The
// user's UUID is "" when no user has the identity.
func (s *Stores) FindOwner(ctx context.Context, id Identity) (user User, ident Ident, err error) {
	ident, err = s.Idents.Read(ctx, id.UUID())
	if errors.Is(err, errs.NotFound) {
		// As many reads as for a known identity, so that both take the same time.
		_, err := s.Users.Read(ctx, id.UUID())
		return user, ident, IgnoreNotFound(err)
	}
	if err != nil {
		return user, ident, err
	}
	if err := id.matches(ident); err != nil {
		return user, ident, err
	}
	user, err = s.Users.Read(ctx, ident.User)
	return user, ident, IgnoreNotFound(err)
}
