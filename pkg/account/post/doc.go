// Package post requests, composes and sends mails, and verifies the tokens in them.
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
