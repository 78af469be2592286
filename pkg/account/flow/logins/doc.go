// Package logins logs users in.
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
