// Package logins logs users in, by any method.
//
//	Login ──► limit of the network address ──► delay of the account ──► compare hash
//	             right: LogIn; failures reset          wrong: failure recorded in the ident
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

	"belfry/pkg/account/flow/changes"
	"belfry/pkg/account/flow/links"
	"belfry/pkg/account/flow/recovery"
	"belfry/pkg/account/guess"
	"belfry/pkg/account/method/mails"
	"belfry/pkg/account/method/passkeys"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/method/providers"
	"belfry/pkg/account/method/recoverycodes"
	"belfry/pkg/account/method/totp"
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

	Changes       *changes.Changes
	Links         *links.Flow
	Mails         *mails.Method
	Notices       *notices.Notices
	Uses          *once.Uses
	Passkeys      *passkeys.Method
	Passwords     *passwords.Method
	Post          *post.Post
	Providers     *providers.Method
	Recovery      *recovery.Flow
	RecoveryCodes *recoverycodes.Method
	Sessions      *sessions.Sessions
	TOTP          *totp.Method
	Users         *users.Users
}
