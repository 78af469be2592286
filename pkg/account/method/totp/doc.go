// Package totp is the method by which an authenticator app proves who somebody is.
package totp

import (
	"belfry/internal/baseurl"
	"belfry/internal/seal"
	"belfry/pkg/account/flow/enrollment"
	"belfry/pkg/account/guess"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/account/users"
)

// Method sets up authenticator apps, and verifies their codes.
type Method struct {
	DB      *record.Stores
	Guesses *guess.Guesses
	Base    baseurl.URL
	Sealer  *seal.Sealer // may be nil

	Enrollment *enrollment.Flow
	Sessions   *sessions.Sessions
	Users      *users.Users
}
