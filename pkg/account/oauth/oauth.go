// Package oauth authenticates users at other servers: by OAuth 2 (GitHub, Google,
// Facebook, Amazon, GitLab, Discord, LinkedIn), OAuth 1 (Twitter) and OpenID
// Connect (Apple, Microsoft, Slack and any provider that has a discovery document).
//
// A login has two steps:
//
//	Begin(AuthRequest) ──► Redirect ──► the user logs in at the provider
//	                                                  │
//	Identity ◄── profile ◄── token ◄── Finish(Callback)
//
// The package keeps no state between the steps. The caller stores the verifier and the secret. By State or, for OAuth
// 1, by Redirect.Token, the caller checks that the callback comes from the redirected browser.
//
// Finish fails with one of these kinds:
//
//   - Denied: the user refused
//   - Invalid: the provider refused the code, or its reply can't be trusted
//   - Unavailable: the provider is unreachable, slow or overloaded
//   - Internal: the provider refuses belfry itself; the configuration is wrong
//   - Canceled: the caller's context ended
//
// Neither errors nor profiles contain a token, code, secret or verifier: errors of the libraries quote replies and
// URLs, so they are replaced, not wrapped. Only Identity.Tokens has tokens, for providers that are configured to keep
// them, see Keeper.
package oauth

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"belfry/pkg/object"
)

// Provider authenticates users. It is safe for concurrent use.
type Provider interface {
	// Begin starts a login.
	Begin(ctx context.Context, b AuthRequest) (Redirect, error)
	// Finish completes a login with the callback of the browser.
	Finish(ctx context.Context, f Callback) (Identity, error)
}

// AuthRequest starts a login.
type AuthRequest struct {
	CallbackURL string // the redirect URI: <baseURL>/auth/callback
	State       string // is returned in the callback; OAuth 1 does not have it
	Verifier    string // of PKCE: 43 to 128 characters that can't be guessed
}

// Redirect is the target of the browser's redirect and the data to store until the
// callback.
type Redirect struct {
	URL string
	// the request token of OAuth 1, which is returned as oauth_token, and its secret; "" for OAuth 2
	Token, Secret string
}

// Callback completes a login. CallbackURL and Verifier are those of the
// AuthRequest, Secret is that of the Redirect.
type Callback struct {
	CallbackURL      string
	Query            url.Values // of the callback's URL
	Verifier, Secret string
}

// Identity is the user, as the provider knows them.
type Identity struct {
	ID      string        // never changes and is never reused, unlike names and addresses
	Profile object.Object // the provider's data about the user
	// fields that are kept if they are absent from a later profile: the provider sends them only at the first login, or
	// did not return them now
	Once    []string
	Changes []string // parts of the profile that were changed, for the log; none identifies the user
	Tokens  *Tokens  // nil unless the provider is configured to keep them
}

// Requests say how a provider is reached.
type Requests struct {
	Timeout   time.Duration     // of Begin, of Finish and of Refresh; 0 is 10 s
	Transport http.RoundTripper // nil: http.DefaultTransport
}
