package login

import (
	"fmt"
	"slices"
	"testing"

	"belfry/test/provider"
)

var (
	oauth2Names = []string{"github", "google", "facebook", "amazon", "oidc"}
	// whose profile says who the user is
	withoutOIDC = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "oidc" })
)

// A failure of a provider creates no user and no session, and does not affect
// later logins.
func TestProviderFailures(t *testing.T) {
	t.Parallel()
	w := newFixture(t, options{})
	s := w.providers
	for _, c := range []struct {
		what   string
		names  []string
		reason string
		spoil  func()
	}{
		// First, because discovery happens once.
		{"discovery is unavailable", []string{"oidc"}, "provider", func() { s.Down(provider.Discovery) }},
		{"discovery fails", []string{"oidc"}, "provider", func() { s.Answer(provider.Discovery, 500, "") }},
		{"no request token", []string{"twitter"}, "provider", func() { s.Down(provider.RequestToken) }},
		{"a request token is refused", []string{"twitter"}, "rejected",
			func() { s.Answer(provider.RequestToken, 401, "{}") }},
		{"keys are unavailable", []string{"oidc"}, "provider", func() { s.Down(provider.Keys) }},
		{"token endpoint unavailable", names, "provider", func() { s.Down(provider.Token) }},
		{"tokens fail", names, "provider", func() { s.TokenError(500, "") }},
		{"tokens are refused", names, "rejected", func() { s.TokenError(400, `{"error":"invalid_grant"}`) }},
		{"belfry is refused", oauth2Names, "rejected", func() { s.TokenError(401, `{"error":"invalid_client"}`) }},
		{"profile endpoint unavailable", names, "provider", func() { s.Down(provider.Profile) }},
		{"profiles fail", names, "provider", func() { s.ProfileError(503, "") }},
		{"profiles are nonsense", withoutOIDC, "rejected", func() { s.ProfileError(200, "<html>") }},
		{"profiles have no id", names, "rejected", func() { s.ProfileError(200, "{}") }},
		{"profiles are huge", withoutOIDC, "rejected", s.HugeProfile},
		{"another nonce", []string{"oidc"}, "rejected",
			func() { s.IDToken(func(claims map[string]any) { claims["nonce"] = "made-up" }) }},
		{"another audience", []string{"oidc"}, "rejected",
			func() { s.IDToken(func(claims map[string]any) { claims["aud"] = "other" }) }},
	} {
		w.sub(c.what, func(w *fixture) {
			s.User("1")
			c.spoil()
			for _, name := range c.names {
				b := w.browser()
				b.wantText(b.login(name), "out "+c.reason)
				b.wantText(b.userUUID(), "")
				if len(b.cookies()) > 0 {
					w.Errorf("%s: cookies %v", name, b.cookies())
				}
			}
			s.Up()
			s.IDToken(nil)
		})
	}
	if w.count() != [2]int{} || len(w.registerEvents("*")) > 0 {
		t.Errorf("users and idents: %v", w.count())
	}
	for _, name := range names {
		w.browser().mustLogin(name)
	}
}

func TestACallbackOfAnotherIssuerIsRejected(t *testing.T) {
	t.Parallel()
	w := newFixture(t, options{})
	w.providers.AnswerAs("https://evil.test")
	for _, name := range oauth2Names {
		b := w.browser()
		b.wantText(b.login(name), "out rejected")
		b.wantText(b.userUUID(), "")
	}
	if w.count() != [2]int{} {
		t.Errorf("users and idents: %v", w.count())
	}
	w.browser().mustLogin("twitter")
}

func TestAFailedFlowKeepsTheSession(t *testing.T) {
	t.Parallel()
	w := newFixture(t, options{})
	w.providers.User("1")
	b := w.browser()
	user := b.mustLogin("github")
	b.waitForIdents("1_github")
	cookie := b.session()
	for _, name := range names {
		w.providers.Down(provider.Profile)
		b.wantText(b.login(name), "out provider")
		w.providers.Up()
		w.providers.Deny(true)
		b.wantText(b.login(name), "out denied")
		w.providers.Deny(false)
		b.wantText(b.userUUID(), user)
		b.wantText(b.session(), cookie)
	}
	b.waitForIdents("1_github")
	if w.count() != [2]int{1, 1} {
		t.Errorf("users and idents: %v", w.count())
	}
}

// A user that the schema rejects leaves nothing that prevents a registration
// after the schema was changed.
func TestTheUserSchemaIsEnforced(t *testing.T) {
	t.Parallel()
	w := newFixture(t,
		options{users: `, schema: user.json`, files: map[string]string{"user.json": `{"required":["nickname"]}`}})
	for _, name := range names {
		for range 2 {
			b := w.browser()
			b.wantText(b.login(name), "out rejected")
			b.wantText(b.userUUID(), "")
		}
	}
	if w.count() != [2]int{} || len(w.registerEvents("*")) > 0 {
		t.Errorf("users and idents: %v", w.count())
	}
	w.stop()
	w.start(options{})
	for _, name := range names {
		user := w.browser().mustLogin(name)
		if n := len(w.registerEvents(user)); n != 1 {
			t.Errorf("%s: %d times Register", name, n)
		}
	}
}

// Flows count against the network address; those that succeed do not.
func TestFlowsAreLimited(t *testing.T) {
	const limit = 3
	w := newFixture(t, options{limit: limit})
	for i := range 3 * limit {
		w.providers.User(fmt.Sprint(i))
		w.browser().mustLogin("github")
	}
	eventually(t, func() error {
		b := w.browser()
		if got := b.begin("github"); got.Path != "/out" || got.Query().Get("reason") != "limited" {
			return fmt.Errorf("the browser is at %s", got.Path)
		}
		return nil
	})
	if w.count() != [2]int{3 * limit, 3 * limit} {
		t.Errorf("users and idents: %v", w.count())
	}
}
