// Package stepup authenticates users again who are logged in.
//
//	session ── StepUp ──┬─ has a second factor ──► that one
//	                    └─ has none ──► password, or a passkey ──► another session in its place
package stepup

import (
	"belfry/pkg/account/flow/logins"
	"belfry/pkg/account/guess"
	"belfry/pkg/account/method/passkeys"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/sessions"
)

// Flow authenticates again.
type Flow struct {
	Guesses *guess.Guesses

	Login     *logins.Flow
	Passkeys  *passkeys.Method
	Passwords *passwords.Method
	Sessions  *sessions.Sessions
}
