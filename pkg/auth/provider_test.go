package auth_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

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
	id := oauth.Identity{ID: f.Query.Get("code"), Profile: profile}
	if id.ID == mangled {
		id.Changes = []string{"bio: repaired", "groups: left out, too large"}
	}
	return id, nil
}

// mangled is a user whose profile the provider does not send as it can be stored.
const mangled = "mangled"

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

// What of a profile could not be stored as it was sent is in the log, at each login.
func TestTheLogNamesWhatOfAProfileIsNotStored(t *testing.T) {
	w := newFixture(t, github)
	const line = `level=WARN msg="auth: a provider's profile could not be stored as it was sent" provider=github changes="[bio: repaired groups: left out, too large]"`
	for n := range 2 {
		must(w.loginByProvider(mangled, from))
		if got := strings.Count(w.log.String(), line); got != n+1 {
			t.Errorf("after login %d the line is %d times in the log: %s", n+1, got, w.log)
		}
	}
	must(w.loginByProvider("grace", from))
	if got := strings.Count(w.log.String(), "could not be stored as it was sent"); got != 2 {
		t.Errorf("%d lines", got)
	}
}
