package account

import (
	"context"
	"errors"
	"maps"

	"belfry/pkg/account/oauth"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// emailType is the type of idents of e-mail addresses.
const emailType = "email"

// identity is who somebody is to a provider; an ident represents it. The
// provider "email" knows people by their address.
type identity struct {
	providerID string // the provider's id of the user
	provider   string
	profile    object.Object
	once       []string      // fields of the profile that the provider sends once
	tokens     *oauth.Tokens // nil unless the provider keeps them
	validated  bool

	// Of an identity that is linked, besides what all have.
	fields object.Object      // of its ident
	single bool               // it is Exists also for the user who has it
	events []store.ExtraEvent // published with its ident
}

// emailIdentity is the identity of an address. Text that is no address
// belongs to no user and is not changed: its lower case could be an address.
func emailIdentity(login string) identity {
	address, err := knownAddress(login)
	if err != nil {
		address = login
	}
	profile := object.Object{}
	profile.Set(emailType, address)
	return identity{providerID: address, provider: emailType, profile: profile}
}

const (
	fieldProfile = "profile"

	// fieldProven marks an ident whose address was proven by the owner of the
	// account. validated alone may be a stranger's account and a link that the
	// address's owner followed.
	fieldProven = "_proven"

	// fieldAdded marks an ident that was added to an existing account.
	fieldAdded = "_added"
)

// uuid is the uuid of the ident.
func (id identity) uuid() string { return identUUID(id.providerID, id.provider) }

// identUUID is the uuid of the ident of a provider's user. An id that is no
// valid uuid is represented by its hash.
func identUUID(id, provider string) string {
	if uuid := id + "_" + provider; object.ValidUUID(uuid) {
		return uuid
	}
	return hexDigest(id) + "_" + provider
}

// identFields are the fields of the ident, without its user.
func (id identity) identFields() object.Object {
	o := object.Object{}
	maps.Copy(o, id.fields)
	o.Set("type", id.provider)
	o.Set(fieldProfile, id.profile)
	o.Set("validated", id.validated)
	o.Set(fieldProven, id.validated)
	o.Set("_id", id.providerID)
	return o
}

// merged is the profile, with the fields of the stored one that the provider sends once.
func (id identity) merged(stored []byte) object.Object {
	before, err := object.Decode(stored)
	if err != nil {
		return id.profile
	}
	profile := maps.Clone(id.profile)
	for _, name := range id.once {
		if profile[name] == nil && before[name] != nil {
			profile[name] = before[name]
		}
	}
	return profile
}

// matches reports Denied for an ident of another identity with the same uuid:
// providers choose their ids, and a_b at c has the uuid of a at b_c.
func (id identity) matches(ident object.Object) error {
	providerID, _ := ident.Text("_id")
	provider, _ := ident.Text("type")
	if providerID != id.providerID || provider != id.provider {
		return errs.New(errs.Denied, "the login has the same uuid as that of another provider's user")
	}
	return nil
}

func (id identity) errTaken() error {
	return errs.New(errs.Exists, "there is an account with this login already")
}

// findOwner returns the user that an identity belongs to, and the ident. The
// user's UUID is "" when no user has the identity.
func (s *Service) findOwner(ctx context.Context, id identity) (user, ident store.Stored, err error) {
	ident, err = s.idents.Get(ctx, id.uuid())
	if errors.Is(err, errs.NotFound) {
		// As many reads as for a known identity, so that their time is the same.
		_, err := s.users.Get(ctx, id.uuid())
		return user, ident, ignoreNotFound(err)
	}
	if err != nil {
		return user, ident, err
	}
	o, err := ident.Object()
	if err != nil {
		return user, ident, err
	}
	if err := id.matches(o); err != nil {
		return user, ident, err
	}
	uuid, _ := o.Text(fieldUser)
	user, err = s.users.Get(ctx, uuid)
	return user, ident, ignoreNotFound(err)
}
