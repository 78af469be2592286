// Package admin manages users on behalf of admins.
package admin

import (
	"belfry/pkg/account/flow/addresses"
	"belfry/pkg/account/flow/changes"
	"belfry/pkg/account/flow/deletion"
	"belfry/pkg/account/flow/enrollment"
	"belfry/pkg/account/flow/links"
	"belfry/pkg/account/guess"
	"belfry/pkg/account/keys"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/notices"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/account/users"
	"belfry/pkg/store/policy"
)

// Admin manages users.
type Admin struct {
	DB      *record.Stores
	Guesses *guess.Guesses
	Email   *post.Email      // nil without login by e-mail
	Admins  *policy.UserRule // may be nil

	Addresses  *addresses.Flow
	Changes    *changes.Changes
	Deletion   *deletion.Flow
	Enrollment *enrollment.Flow
	Keys       *keys.Keys
	Links      *links.Flow
	Notices    *notices.Notices
	Passwords  *passwords.Method
	Post       *post.Post
	Sessions   *sessions.Sessions
	Users      *users.Users
}
