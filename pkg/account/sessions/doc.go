// Package sessions has the sessions of users: it starts, replaces, lists and ends them, and says what a session may do.
package sessions

import (
	"log/slog"
	"sync"

	"belfry/pkg/account/guess"
	"belfry/pkg/account/places"
	"belfry/pkg/account/record"
	"belfry/pkg/store/policy"
)

// Sessions manages the sessions of users.
type Sessions struct {
	DB        *record.Stores
	Guesses   *guess.Guesses
	Log       *slog.Logger
	MFA       MFA
	Admins    *policy.UserRule // may be nil
	Auditors  *policy.UserRule // may be nil
	Pending   *sync.WaitGroup  // background work that no reply waits for
	Places    *places.Database // may be nil
	Redirects []string         // where applications may get codes
	Cookie    string           // the name of that of sessions
	Former    []FormerCookie   // its names before
	rules     keyRules
}
