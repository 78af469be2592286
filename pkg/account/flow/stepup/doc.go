// Package stepup authenticates logged-in users again.
//
//	session ── StepUp ──┬─ has a second factor ──► that one
//	                    └─ lacks one ──► password, or another method.Again ──► another session in its place
package stepup

import (
	"belfry/pkg/account/flow/logins"
	"belfry/pkg/account/guess"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/sessions"
)

// Flow authenticates again.
type Flow struct {
	Guesses *guess.Guesses

	Login     *logins.Flow
	Passwords *passwords.Method
	Sessions  *sessions.Sessions
}
