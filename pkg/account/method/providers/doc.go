// Package providers is the method by which an OAuth provider proves a user's identity.
//
//	Begin ──► flow stored, bound to the browser ──► redirect to the provider ── callback ──► ConsumeFlow, Identify
//
// It also keeps the tokens of providers, and refreshes them.
package providers

import (
	"log/slog"
	"sync"

	"belfry/internal/baseurl"
	"belfry/internal/seal"
	"belfry/pkg/account/guess"
	"belfry/pkg/account/oauth"
	"belfry/pkg/account/once"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
)

// Method sends browsers to providers, and verifies their callbacks.
type Method struct {
	DB        *record.Stores
	Guesses   *guess.Guesses
	Log       *slog.Logger
	Base      baseurl.URL
	Providers map[string]oauth.Provider
	Sealer    *seal.Sealer    // may be nil
	Pending   *sync.WaitGroup // background work that no reply waits for

	Uses     *once.Uses
	Sessions *sessions.Sessions
}
