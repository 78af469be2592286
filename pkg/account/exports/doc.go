// Package exports begins exports of a user's data.
package exports

import (
	"log/slog"

	"belfry/pkg/account/flow/enrollment"
	"belfry/pkg/account/keys"
	"belfry/pkg/account/method/passkeys"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
)

// Exports begins exports.
type Exports struct {
	DB    *record.Stores
	Log   *slog.Logger
	Slots chan struct{} // holds those in progress

	Enrollment *enrollment.Flow
	Keys       *keys.Keys
	Passkeys   *passkeys.Method
	Sessions   *sessions.Sessions
}
