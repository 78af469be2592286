// Package links adds identities to accounts, and removes them.
//
//	Link ──► ident created ──► the session is still valid? ── no ──► ident deleted
//	Unlink ──► owner informed ──► ident marked in the user ──► ident deleted
package links

import (
	"belfry/pkg/account/flow/changes"
	"belfry/pkg/account/notices"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/account/users"
)

// Flow links and unlinks identities.
type Flow struct {
	DB    *record.Stores
	Email *post.Email // nil without login by e-mail

	Changes  *changes.Changes
	Notices  *notices.Notices
	Sessions *sessions.Sessions
	Users    *users.Users
}
