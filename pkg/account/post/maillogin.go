package post

import (
	"context"
	"time"

	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/mail"
)

// MailLogin configures logins without a password, by a code or the link of a mail.
type MailLogin struct {
	Code, Link         bool          // which of the two there are
	TTL                time.Duration // of a code, also of one that is a second factor, and of the token of a link
	CodeMail, LinkMail *mail.Templates
}

// Addressee checks the request of a mail to an address, and returns the identity and its user and ident, as findOwner
// does.
func (s *Post) Addressee(ctx context.Context, login string, from sessions.Client) (user record.User, ident record.Ident, id record.Identity, err error) {
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
