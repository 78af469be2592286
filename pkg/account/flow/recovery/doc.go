// Package recovery gives accounts back to the owners of their addresses.
//
//	Request ──► mail requested ──► delivered ──► link: OpenRecovery
//	                                                  │ token
//	Recover ── ident proven ───────────────► password set, all sessions end
//	        ── not proven, address added ──► the address moves to an account of its own
//	        ── not proven otherwise ───────► the same as proven; all other idents are removed
//
// An ident is proven if the same person has had both the address and the account.
package recovery

import (
	"belfry/pkg/account/flow/changes"
	"belfry/pkg/account/flow/links"
	"belfry/pkg/account/guess"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/notices"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/account/users"
)

// Flow recovers accounts.
type Flow struct {
	DB      *record.Stores
	Guesses *guess.Guesses

	Changes   *changes.Changes
	Links     *links.Flow
	Notices   *notices.Notices
	Passwords *passwords.Method
	Post      *post.Post
	Sessions  *sessions.Sessions
	Users     *users.Users
}
