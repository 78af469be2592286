// Package firstadmin creates the first admin by a link that belfry prints.
//
//	Offer ──► link valid for an hour ──┬─ Create ──► all links end, admin created, session
//	                                   └─ a user becomes an admin otherwise ──► all links end
package firstadmin

import (
	"belfry/pkg/account/admin"
	"belfry/pkg/account/flow/logins"
	"belfry/pkg/account/guess"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/once"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/account/users"
	"belfry/pkg/store/policy"
)

// Flow makes the first admin.
type Flow struct {
	DB      *record.Stores
	Guesses *guess.Guesses
	Admins  *policy.UserRule // may be nil

	Admin     *admin.Admin
	Login     *logins.Flow
	Uses      *once.Uses
	Passwords *passwords.Method
	Post      *post.Post
	Sessions  *sessions.Sessions
	Users     *users.Users
}
