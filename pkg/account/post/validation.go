package post

import (
	"context"

	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
)

// Request requests a mail to an address, whose purpose depends on the
// address's user and ident.
func (s *Post) Request(ctx context.Context, login, mailbox string, from sessions.Client, why func(user record.User, ident record.Ident) record.Purpose) error {
	user, ident, id, err := s.Addressee(ctx, login, from)
	if err != nil {
		return err
	}
	return s.Enqueue(ctx, id.ID, mailbox, why(user, ident))
}

// Outcome is what following the link of a mail leads to.
type Outcome int

// Outcomes of FollowLink.
const (
	OpenRegistration   Outcome = iota // show the registration form, with the token
	OpenRecovery                      // show the form for a new password, with the token
	AddressValidated                  // the address is validated; nothing is left to do
	OpenLogin                         // show a button that logs in with the token
	OpenLoginElsewhere                // the login was asked for by another browser
	OpenAddressChange                 // show a button that confirms the change of an address
	OpenAddressUndo                   // show a button that undoes it
)

// HasForm reports whether a form has to be sent with the token.
func (o Outcome) HasForm() bool {
	return o == OpenRegistration || o == OpenRecovery || o == OpenAddressChange || o == OpenAddressUndo
}
