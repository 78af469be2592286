package login

import (
	"fmt"
	"testing"

	"belfry/test/provider"
)

var oauth2Names = []string{"github", "google", "facebook", "amazon", "oidc"}

// What a provider does wrong makes nobody, logs nobody in, and is over when
// it is over.
func TestProviderFailures(t *testing.T) {
	w := begin(t, options{})
	s := w.providers
	for _, c := range []struct {
		what  string
		names []string
		spoil func()
	}{
		// First of all, because discovery happens once.
		{"discovery is away", []string{"oidc"}, func() { s.Down(provider.Discovery) }},
		{"discovery fails", []string{"oidc"}, func() { s.Answer(provider.Discovery, 500, "") }},
		{"no request token", []string{"twitter"}, func() { s.Down(provider.RequestToken) }},
		{"a request token is refused", []string{"twitter"}, func() { s.Answer(provider.RequestToken, 401, "{}") }},
		{"keys are away", []string{"oidc"}, func() { s.Down(provider.Keys) }},
		{"tokens are away", names, func() { s.Down(provider.Token) }},
		{"tokens fail", names, func() { s.TokenError(500, "") }},
		{"tokens are refused", names, func() { s.TokenError(400, `{"error":"invalid_grant"}`) }},
		{"belfry is refused", oauth2Names, func() { s.TokenError(401, `{"error":"invalid_client"}`) }},
		{"profiles are away", names, func() { s.Down(provider.Profile) }},
		{"profiles fail", names, func() { s.ProfileError(503, "") }},
		{"profiles are nonsense", names, func() { s.ProfileError(200, "<html>") }},
		{"profiles are nobody's", names, func() { s.ProfileError(200, "{}") }},
		{"profiles are huge", names, s.HugeProfile},
		{"another nonce", []string{"oidc"}, func() { s.IDToken(func(claims map[string]any) { claims["nonce"] = "made-up" }) }},
		{"another audience", []string{"oidc"}, func() { s.IDToken(func(claims map[string]any) { claims["aud"] = "other" }) }},
	} {
		w.sub(c.what, func(w *world) {
			s.User("1")
			c.spoil()
			for _, name := range c.names {
				b := w.browser()
				b.is(b.visit(name), "out provider")
				b.is(b.who(), "")
				if len(b.cookies()) > 0 {
					w.Errorf("%s: cookies %v", name, b.cookies())
				}
			}
			s.Up()
			s.IDToken(nil)
		})
	}
	if w.count() != [2]int{} || len(w.registered("*")) > 0 {
		t.Errorf("users and idents: %v", w.count())
	}
	for _, name := range names {
		w.browser().enters(name)
	}
}

// A browser brings what another provider has told it.
func TestACallbackOfAnotherIssuerIsRejected(t *testing.T) {
	w := begin(t, options{})
	w.providers.AnswerAs("https://evil.test")
	for _, name := range oauth2Names {
		b := w.browser()
		b.is(b.visit(name), "out provider")
		b.is(b.who(), "")
	}
	if w.count() != [2]int{} {
		t.Errorf("users and idents: %v", w.count())
	}
	w.browser().enters("twitter")
}

// While a user is logged in a failure costs nothing either.
func TestAFailedFlowKeepsTheSession(t *testing.T) {
	w := begin(t, options{})
	w.providers.User("1")
	b := w.browser()
	user := b.enters("github")
	b.hasWays("1_github")
	cookie := b.session()
	for _, name := range names {
		w.providers.Down(provider.Profile)
		b.is(b.visit(name), "out provider")
		w.providers.Up()
		w.providers.Deny(true)
		b.is(b.visit(name), "out denied")
		w.providers.Deny(false)
		b.is(b.who(), user)
		b.is(b.session(), cookie)
	}
	b.hasWays("1_github")
	if w.count() != [2]int{1, 1} {
		t.Errorf("users and idents: %v", w.count())
	}
}

// A schema that wants more of a user than a provider brings leaves nothing
// behind that is in the way once it is gone.
func TestTheUserSchemaIsEnforced(t *testing.T) {
	w := begin(t, options{users: `, schema: user.json`, files: map[string]string{"user.json": `{"required":["nickname"]}`}})
	for _, name := range names {
		for range 2 {
			b := w.browser()
			b.is(b.visit(name), "out provider")
			b.is(b.who(), "")
		}
	}
	if w.count() != [2]int{} || len(w.registered("*")) > 0 {
		t.Errorf("users and idents: %v", w.count())
	}
	w.stop()
	w.start(options{})
	for _, name := range names {
		user := w.browser().enters(name)
		if n := len(w.registered(user)); n != 1 {
			t.Errorf("%s: %d times Register", name, n)
		}
	}
}

// Visits cost their network address something; those that end well do not.
func TestFlowsAreLimited(t *testing.T) {
	const limit = 3
	w := begin(t, options{limit: limit})
	for i := range 3 * limit {
		w.providers.User(fmt.Sprint(i))
		w.browser().enters("github")
	}
	eventually(t, func() error {
		b := w.browser()
		if got := b.leave("github"); got.Path != "/out" || got.Query().Get("reason") != "limited" {
			return fmt.Errorf("the browser is at %s", got.Path)
		}
		return nil
	})
	if w.count() != [2]int{3 * limit, 3 * limit} {
		t.Errorf("users and idents: %v", w.count())
	}
}
