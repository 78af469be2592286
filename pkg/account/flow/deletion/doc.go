// Package deletion deletes accounts on their users' request.
//
//	Plan ──► planned, sessions end ──┬─ Undo ──► not planned
//	                                 └─ due: the account is closed ── DeleteDue ──► deleted
//	                                                               └─ overdue for a day ──► deferred, once
package deletion

import (
	"log/slog"

	"belfry/config"
	"belfry/pkg/account/guess"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/notices"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
)

// Flow deletes accounts.
type Flow struct {
	DB      *record.Stores
	Guesses *guess.Guesses
	Log     *slog.Logger
	Config  *config.Deletion // nil: users can't delete their accounts

	Notices   *notices.Notices
	Passwords *passwords.Method
	Sessions  *sessions.Sessions
}
