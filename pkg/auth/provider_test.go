package auth_test

import (
	"context"
	"net/url"

	"belfry/pkg/auth"
	"belfry/pkg/auth/oauth"
	"belfry/pkg/store/object"
)

// provider is a provider whose users are identified by the code.
type provider struct{}

var _ oauth.Provider = provider{}

func (provider) Begin(_ context.Context, b oauth.AuthRequest) (oauth.Redirect, error) {
	return oauth.Redirect{URL: "https://provider.example.com/?state=" + url.QueryEscape(b.State)}, nil
}

func (provider) Finish(_ context.Context, f oauth.Callback) (oauth.Identity, error) {
	profile := object.Object{}
	profile.Set("name", f.Query.Get("code"))
	return oauth.Identity{ID: f.Query.Get("code"), Profile: profile}, nil
}

// github adds a provider.
func github(o *auth.Options) { o.Providers = map[string]oauth.Provider{"github": provider{}} }

// loginByProvider logs in through the provider, or links the identity if the
// client has a session.
func (w *fixture) loginByProvider(who string, c auth.Client) (auth.IssuedSession, error) {
	w.Helper()
	flow, err := w.BeginOAuth(w.Context(), "github", true, c)
	w.must(err)
	u, err := url.Parse(flow.URL)
	w.must(err)
	in, _, err := w.FinishOAuth(w.Context(), url.Values{"state": {u.Query().Get("state")}, "code": {who}}, flow.Secret, c)
	return in, err
}
