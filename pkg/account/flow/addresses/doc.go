// Package addresses replaces addresses of accounts, and undoes such changes.
//
//	Request ──► change recorded in the user ──┬─ mail to the new address ── Finish ──► ident linked, the old one removed
//	                                          └─ mail to the owner address ── Finish ──► undone: sessions end, addresses restored
//	                                                                      └─ KeepChanges ──► can no longer be undone
package addresses

import (
	"log/slog"

	"belfry/pkg/account/flow/changes"
	"belfry/pkg/account/flow/links"
	"belfry/pkg/account/guess"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/notices"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
)

// Flow replaces addresses.
type Flow struct {
	DB      *record.Stores
	Guesses *guess.Guesses
	Log     *slog.Logger

	Changes   *changes.Changes
	Links     *links.Flow
	Notices   *notices.Notices
	Passwords *passwords.Method
	Post      *post.Post
	Sessions  *sessions.Sessions
}
