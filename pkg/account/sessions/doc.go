// Package sessions has the sessions of users: it starts, replaces, lists and ends them, and decides what a session may
// do.
//
// # States of a session
//
//	proof ── Start ──► valid ──┬─ used: extended, at most once an hour ──► valid
//	                           ├─ RequireFresh: proven less than 10 minutes ago ──► may change the account's protection
//	                           ├─ Raise: proven again ──► another session in its place
//	                           └─ logout, revoked, replaced, too many, expired, its user's epoch ──► ended
//
// # Ending sessions
//
// A session stores the epoch of its user. The write that changes a password
// increments the epoch, which ends all sessions atomically, including those that
// an index does not yet find.
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
	DB       *record.Stores
	Guesses  *guess.Guesses
	Log      *slog.Logger
	MFA      MFA
	Admins   *policy.UserRule // may be nil
	Auditors *policy.UserRule // may be nil
	Pending  *sync.WaitGroup  // background work that no reply waits for
	Places   *places.Database // may be nil
	Cookie   string           // the name of the sessions' cookie
	Former   []FormerCookie   // its names before
	rules    keyRules
}
