package post

import (
	"context"
	"time"

	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/mail"
)

// MailLogin configures logins without a password, by a code or the link of a mail.
type MailLogin struct {
	Code, Link         bool          // which of the two are configured
	TTL                time.Duration // of a code, including second factors, and of the token of a link
	CodeMail, LinkMail *mail.Templates
}

// Addressee checks the request of a mail to an address, and returns the identity and its user and ident, as findOwner
// does.
func (s *Post) Addressee(ctx context.Context, login string,
	from sessions.Client) (user record.User, ident record.Ident, id record.Identity, err error) {
	if err := s.RequireEmail(); err != nil {
		return user, ident, id, err
	}
	if err := sessions.RequireTexts("a login is needed", "login", login); err != nil {
		return user, ident, id, err
	}
	if _, err := record.KnownAddress(login); err != nil {
		return user, ident, id, err
	}
	if err := s.Guesses.Take(from.Address); err != nil {
		return user, ident, id, err
	}
	id = record.AddressIdentity(login)
	user, ident, err = s.DB.FindOwner(record.AsService(ctx, ""), id)
	return user, ident, id, err
}

// Request requests a mail to an address, whose purpose depends on the
// address's user and ident.
func (s *Post) Request(ctx context.Context, login, mailbox string, from sessions.Client,
	why func(user record.User, ident record.Ident) record.Purpose) error {
	user, ident, id, err := s.Addressee(ctx, login, from)
	if err != nil {
		return err
	}
	return s.Enqueue(ctx, id.ID, mailbox, why(user, ident))
}

// Outcome is the result of the link of a mail.
type Outcome int

// Outcomes of the link of a mail.
const (
	OpenRegistration   Outcome = iota // show the registration form, with the token
	OpenRecovery                      // show the form for a new password, with the token
	OpenInvitation                    // the same, for the first password of an invited user
	AddressValidated                  // the address is validated; nothing is left to do
	OpenLogin                         // show a button that logs in with the token
	OpenLoginElsewhere                // another browser requested the login
	OpenAddressChange                 // show a button that confirms the change of an address
	OpenAddressUndo                   // show a button that undoes it
)

// HasForm reports whether a form has to be sent with the token.
func (o Outcome) HasForm() bool {
	switch o {
	case OpenRegistration, OpenRecovery, OpenInvitation, OpenAddressChange, OpenAddressUndo:
		return true
	}
	return false
}

// RequireEmail reports NotFound when login by e-mail is not configured.
func (s *Post) RequireEmail() error {
	if s.Email == nil {
		return errs.New(errs.NotFound, "login by e-mail is not configured")
	}
	return nil
}
