// Package recovery gives accounts back to who has an address of theirs.
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
