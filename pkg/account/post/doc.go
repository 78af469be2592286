// Package post requests, composes and sends mails, and verifies the tokens in them.
//
//	Order ──► the mailbox has the request, which is an event ──► listener mail: Deliver ──► composed, sent, recorded
//
// The package that owns the purpose of a mail sets its composer with ComposeBy. The token of a mail is made when it is
// composed: only its hash is stored, and no event contains it.
package post

import (
	"log/slog"

	"belfry/internal/baseurl"
	"belfry/pkg/account/guess"
	"belfry/pkg/account/once"
	"belfry/pkg/account/record"
)

// Post manages the mailboxes of addresses.
type Post struct {
	DB        *record.Stores
	Guesses   *guess.Guesses
	Log       *slog.Logger
	Base      baseurl.URL
	Email     *Email // nil without login by e-mail
	composers map[record.Purpose]Composer

	Uses *once.Uses
}

// New makes a Post of its fields, which composes no mails yet: see ComposeBy.
func New(p Post) *Post {
	p.composers = map[record.Purpose]Composer{}
	return &p
}
