// Package totp is the method by which an authenticator app proves a user's identity.
package totp

import (
	"belfry/internal/baseurl"
	"belfry/internal/seal"
	"belfry/pkg/account/method"
	"belfry/pkg/account/record"
	"belfry/pkg/account/users"
)

// Method sets up authenticator apps, and verifies their codes.
type Method struct {
	method.Unasked

	DB     *record.Stores
	Base   baseurl.URL
	Name   string       // of the application, which apps show; "": the host of Base
	Sealer *seal.Sealer // may be nil
	Users  *users.Users
}
