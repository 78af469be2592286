package auth_test

import (
	"context"
	"net/url"

	"belfry/pkg/auth"
	"belfry/pkg/auth/oauth"
	"belfry/pkg/store/object"
)

// provider is somebody else's server, where everybody is whom the code says.
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

// github is a change to a world that has another way in.
func github(o *auth.Options) { o.Providers = map[string]oauth.Provider{"github": provider{}} }

// visit logs in at the other provider, or links that way in to the session
// that a client has.
func (w *fixture) loginByProvider(who string, c auth.Client) (auth.IssuedSession, error) {
	w.Helper()
	flow, err := w.BeginOAuth(w.Context(), "github", true, c)
	w.must(err)
	u, err := url.Parse(flow.URL)
	w.must(err)
	in, _, err := w.FinishOAuth(w.Context(), url.Values{"state": {u.Query().Get("state")}, "code": {who}}, flow.Secret, c)
	return in, err
}
