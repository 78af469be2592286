package post

import (
	"context"
	"errors"
	"time"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
)

const (
	// UndoTTL is how long a change of address can be undone, after it could be confirmed.
	UndoTTL = 7 * 24 * time.Hour

	// MaxChanges is how many changes of address a user can have requested within that time. They are fewer than
	// MaxMailedTokens, so that no token of an undoing is displaced by others of its account.
	MaxChanges = 5
)

// Kinds of mailboxes of a change: for the new address, and for the old one.
const (
	ChangeMailbox = "change"
	UndoMailbox   = "undo"
)

// UndoTTL is how long the token of an undoing is valid from the request of the change.
func (s *Post) UndoTTL() time.Duration {
	if s.Email == nil { // no mails are configured: admins still see earlier changes
		return UndoTTL
	}
	return UndoTTL + s.Email.TokenTTL
}

const (
	// unsentFor is how long the next change waits for an unsent mail: longer than usual failures of mail servers, but
	// not forever, since the mailbox may no longer exist.
	unsentFor = 24 * time.Hour
)

// BindChange binds a token to the change that its mail is about.
func BindChange(_ context.Context, t *record.MailedToken, mailbox record.Mailbox) error {
	if p := mailbox.Change; p != nil && p.Mail == t.Mail {
		t.User, t.Epoch, t.Change, t.Proven = p.User, p.Epoch, p.Change, p.Proven
	}
	return nil
}

// IgnoreUsed returns err unless it is Denied: another call has used up the same token for the same purpose.
func IgnoreUsed(err error) error {
	if errors.Is(err, errs.Denied) {
		return nil
	}
	return err
}
