// Package logins logs users in, by any method.
//
//	by ──► limit of the network address ──┬─ method.Login.Identify ─────────────────────────────────┬─► LogIn ──► Settle
//	                                      └─ byAddress ──► delay of the account ──► method.Prove ───┘
//	                                            wrong: failure recorded in the ident
//
//	any method ── proof ──► LogIn ──┬─ no second factor is missing ──► session
//	                                └─ pending login ──► CompleteLogin ── try counted, factor verified, consumed ──► session
//
//	FinishProvider ──► flow consumed ──► profile fetched ──┬─ identity is known ──► LogIn
//	                                                       ├─ identity is new ────► user created ──► LogIn
//	                                                       └─ flow was to link ───► ident linked to the session's user
package logins

import (
	"log/slog"

	"belfry/pkg/account/flow/applications"
	"belfry/pkg/account/flow/changes"
	"belfry/pkg/account/flow/links"
	"belfry/pkg/account/flow/recovery"
	"belfry/pkg/account/guess"
	"belfry/pkg/account/method"
	"belfry/pkg/account/method/mails"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/method/providers"
	"belfry/pkg/account/notices"
	"belfry/pkg/account/once"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/account/users"
)

// Flow logs users in.
type Flow struct {
	DB      *record.Stores
	Guesses *guess.Guesses
	Log     *slog.Logger
	Email   *post.Email // nil without login by e-mail
	Methods method.Methods

	Applications *applications.Flow
	Changes      *changes.Changes
	Links        *links.Flow
	Mails        *mails.Method
	Notices      *notices.Notices
	Uses         *once.Uses
	Passwords    *passwords.Method
	Post         *post.Post
	Providers    *providers.Method
	Recovery     *recovery.Flow
	Sessions     *sessions.Sessions
	Users        *users.Users
}
