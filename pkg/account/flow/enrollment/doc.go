// Package enrollment adds and removes the second factors of users, of any method.
//
//	Begin ──► the method's Setup, shown once ──► Confirm ──► its Enroll ──► Add ──► with the first one: recovery codes
//	                                                                      └──► the session is replaced
//	Remove ──► with the last one: the recovery codes end
package enrollment

import (
	"belfry/internal/seal"
	"belfry/pkg/account/guess"
	"belfry/pkg/account/method"
	"belfry/pkg/account/notices"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
)

// Flow adds and removes second factors.
type Flow struct {
	DB      *record.Stores
	Guesses *guess.Guesses
	Methods method.Methods
	Sealer  *seal.Sealer // of secrets; may be nil

	Notices  *notices.Notices
	Sessions *sessions.Sessions
}
