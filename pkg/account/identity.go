package account

import (
	"belfry/pkg/account/record"
	"belfry/pkg/store"
)

// identity is an identity with what comes with it from its provider, or from whoever links it.
type identity struct {
	record.Identity
	keep func(*record.Ident) // sets the tokens of the provider in its ident; nil: there are none
	must bool                // a login whose ident was not written has not succeeded

	// Of an identity that is linked, besides what all have.
	passkey *record.Credential
	name    string             // of a passkey
	single  bool               // it is Exists also for the user who has it
	events  []store.ExtraEvent // published with its ident
}

// ident returns the ident of an identity, without its user.
func (id identity) ident() record.Ident {
	i := id.Ident()
	i.Credential, i.Name = id.passkey, id.name
	id.setTokens(&i)
	return i
}

// setTokens sets the tokens of the provider in an ident.
func (id identity) setTokens(i *record.Ident) {
	if id.keep != nil {
		id.keep(i)
	}
}
