// Package registration registers users by their addresses.
//
// With validation first, nothing exists before the token of the mail:
//
//	Register ── no token ──► mail requested ──► delivered
//	                                                │ token
//	            ┌──── form, sent again ◄── FollowLink: OpenRegistration
//	            ▼
//	Register ── token ──► verified, consumed ──► ident claimed ──► user created ──► session
//
// With PostValidation the user is created first, and the link marks the ident:
//
//	Register ──► ident claimed ──► user created ──► session
//	                                   └─► mail requested ──► delivered ──► FollowLink: AddressValidated
//
// While somebody is logged in, Register adds the address to their account.
package registration

import (
	"log/slog"

	"belfry/pkg/account/flow/links"
	"belfry/pkg/account/flow/logins"
	"belfry/pkg/account/guess"
	"belfry/pkg/account/method/mails"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/notices"
	"belfry/pkg/account/once"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/account/users"
)

// Flow registers users.
type Flow struct {
	DB      *record.Stores
	Guesses *guess.Guesses
	Log     *slog.Logger
	Email   *post.Email // nil without login by e-mail

	Links     *links.Flow
	Login     *logins.Flow
	Mails     *mails.Method
	Notices   *notices.Notices
	Uses      *once.Uses
	Passwords *passwords.Method
	Post      *post.Post
	Sessions  *sessions.Sessions
	Users     *users.Users
}
