package users

import (
	"belfry/pkg/account/record"
	"belfry/pkg/store"
)

// Identity is an identity with what comes with it from its provider, or from whoever links it.
type Identity struct {
	record.Identity
	Keep func(*record.Ident) // sets the tokens of the provider in its ident; nil: there are none
	Must bool                // a login whose ident was not written has not succeeded

	// Of an identity that is linked, besides what all have.
	Passkey *record.Credential
	Name    string             // of a passkey
	Single  bool               // it is Exists also for the user who has it
	Events  []store.ExtraEvent // published with its ident
}

// NewIdent returns the ident of an identity, without its user.
func (id Identity) NewIdent() record.Ident {
	i := id.Identity.Ident()
	i.Credential, i.Name = id.Passkey, id.Name
	id.setTokens(&i)
	return i
}

// setTokens sets the tokens of the provider in an ident.
func (id Identity) setTokens(i *record.Ident) {
	if id.Keep != nil {
		id.Keep(i)
	}
}
