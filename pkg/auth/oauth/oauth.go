// Package oauth asks other people's servers who somebody is: OAuth 2 (GitHub,
// Google, Facebook, Amazon), OAuth 1 (Twitter) and OpenID Connect (anybody).
//
// A login has two halves with a browser's journey between them. Begin says
// where to send the browser; when it returns to the callback, Finish takes
// what it brought, asks the provider for the user's profile and hands back an
// Identity. The package keeps nothing in between: whoever calls it keeps the
// verifier and the secret, and checks that the browser which returns is the
// one that left, by State or, for OAuth 1, by Start.Token.
//
// A Finish that fails is of one of these kinds:
//
//   - Denied: the user said no
//   - Invalid: the provider refused the code, or what it says can't be trusted
//   - Unavailable: the provider is away, slow or overloaded
//   - Internal: the provider refuses belfry itself; the configuration is wrong
//   - Canceled: the caller's context ended
//
// The text of an error holds no token, code, secret or verifier, nor does a
// profile: errors of the libraries below quote replies and URLs, and are
// replaced rather than wrapped.
package oauth

import (
	"context"
	"net/url"
	"time"

	"belfry/pkg/store/object"
)

// Provider is one server that knows users. It is safe for concurrent use.
type Provider interface {
	// Begin starts a login.
	Begin(ctx context.Context, b AuthRequest) (Redirect, error)
	// Finish ends a login with what the browser brought back.
	Finish(ctx context.Context, f Callback) (Identity, error)
}

// Begin is what a login begins with.
type AuthRequest struct {
	CallbackURL string // where the provider sends the browser: <baseURL>/auth/callback
	State       string // comes back in the query; OAuth 1 has none
	Verifier    string // of PKCE: 43 to 128 characters that nobody can guess
}

// Start is where to send the browser and what to keep until it returns.
type Redirect struct {
	URL           string
	Token, Secret string // the request token of OAuth 1, which comes back as oauth_token, and its secret; "" for OAuth 2
}

// Finish is what a login ends with. Callback and Verifier are those of Begin,
// Secret is that of Start.
type Callback struct {
	CallbackURL      string
	Query            url.Values // of the callback's URL
	Verifier, Secret string
}

// Identity is who the provider says the user is.
type Identity struct {
	ID      string        // never changes and is never given to another, unlike names and addresses
	Profile object.Object // what the provider tells about the user
}

// Config is an application of an OAuth 2 provider.
type Config struct {
	ClientID, ClientSecret        string
	Scope                         []string      // nil is the provider's default
	AuthURL, TokenURL, ProfileURL string        // "" is the provider's own
	Timeout                       time.Duration // of a Begin or a Finish; 0 is 10 s
}

// OAuth1Config is an application of an OAuth 1 provider.
type OAuth1Config struct {
	ConsumerKey, ConsumerSecret                               string
	RequestTokenURL, AuthorizeURL, AccessTokenURL, ProfileURL string        // "" is the provider's own
	Timeout                                                   time.Duration // of a Begin or a Finish; 0 is 10 s
}

// OIDCConfig is a client of an OpenID Connect provider.
type OIDCConfig struct {
	Issuer                 string
	ClientID, ClientSecret string        // a public client has no secret
	Scope                  []string      // nil is openid, email and profile
	Timeout                time.Duration // of a Begin or a Finish; 0 is 10 s
}
