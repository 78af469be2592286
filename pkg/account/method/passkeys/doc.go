// Package passkeys is the method by which a WebAuthn credential proves a user's identity.
package passkeys

import (
	"belfry/config"
	"belfry/pkg/account/flow/links"
	"belfry/pkg/account/guess"
	"belfry/pkg/account/notices"
	"belfry/pkg/account/once"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/account/users"
)

// Method asks for passkeys, and verifies them.
type Method struct {
	DB      *record.Stores
	Guesses *guess.Guesses
	Config  *config.Passkeys // nil without login by passkey

	Links    *links.Flow
	Notices  *notices.Notices
	Uses     *once.Uses
	Sessions *sessions.Sessions
	Users    *users.Users
}
