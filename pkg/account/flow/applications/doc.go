// Package applications logs users in for applications, by the authorization code of OAuth 2.0 with PKCE.
//
//	Of ──► a login for the application ──► Issue ──► code ──► Exchange ──► session
//	                                                      └──► a second time: the session ends
package applications

import (
	"log/slog"

	"belfry/pkg/account/guess"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
)

// Flow reads the requests of applications, and exchanges codes for sessions.
type Flow struct {
	DB        *record.Stores
	Guesses   *guess.Guesses
	Log       *slog.Logger
	Redirects []string // redirect URLs to which codes may be sent

	Sessions *sessions.Sessions
}
