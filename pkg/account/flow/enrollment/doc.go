// Package enrollment adds and removes the second factors of users, of any method.
//
//	RequireEnrollable ──► the method verifies ──► Add ──► with the first one: recovery codes
//	Remove ──► with the last one: the recovery codes end
package enrollment

import (
	"belfry/pkg/account/notices"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
)

// Flow adds and removes second factors.
type Flow struct {
	DB *record.Stores

	Notices  *notices.Notices
	Sessions *sessions.Sessions
}
