package account_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/account"
	"belfry/pkg/account/oauth"
	"belfry/pkg/account/sessions"
	"belfry/pkg/object"
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
	switch id.ID {
	case mangled:
		id.Changes = []string{"bio: repaired", "groups: left out, too large"}
	case verbose:
		id.Changes = slices.Repeat([]string{"a field: repaired"}, 1000)
		for n := range 1000 {
			id.Changes = append(id.Changes, fmt.Sprintf("f%d: repaired", n))
		}
	}
	return id, nil
}

// Users whose profile the provider does not send as it can be stored.
const (
	mangled = "mangled"
	verbose = "verbose" // has thousands of fields
)

// github adds a provider.
func github(o *account.Options) { o.Providers = map[string]oauth.Provider{"github": provider{}} }

// loginByProvider logs in through the provider, or links the identity if the
// client has a session.
func (w *fixture) loginByProvider(who string, c sessions.Client) (sessions.Issued, error) {
	w.Helper()
	flow, err := w.Providers.Begin(w.Context(), "github", true, c)
	w.must(err)
	u, err := url.Parse(flow.URL)
	w.must(err)
	in, _, err := w.Login.FinishProvider(w.Context(), url.Values{"state": {u.Query().Get("state")}, "code": {who}},
		flow.Secret, c)
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
	must(w.loginByProvider(verbose, from))
	if got := w.log.String(); !strings.Contains(got, `changes="[a field: repaired f0: repaired f1: repaired`) ||
		!strings.Contains(got, `f18: repaired and 981 more]"`) {
		t.Errorf("the log is %s", got)
	}
}
