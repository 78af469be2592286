// Package keys manages API keys.
package keys

import (
	"belfry/pkg/account/guess"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/notices"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
)

// Keys manages API keys.
type Keys struct {
	DB      *record.Stores
	Guesses *guess.Guesses

	Notices   *notices.Notices
	Passwords *passwords.Method
	Sessions  *sessions.Sessions
}
