package api_test

import (
	"net/http"
	"strings"
	"testing"
)

// A page of another site redirects the browser of a user to a provider, where
// the browser is logged in as the attacker, or as the user: that identity must
// not be linked, nor replace the session.
func TestLinkingCannotBeStartedByAnotherSite(t *testing.T) {
	for name, c := range map[string]struct {
		headers []string
		links   bool
	}{
		"a page of another site":       {[]string{"Sec-Fetch-Site", "cross-site"}, false},
		"a page of a sister domain":    {[]string{"Sec-Fetch-Site", "same-site"}, false},
		"one that hides where it is":   {[]string{"Sec-Fetch-Site", "cross-site", "Referer", ""}, false},
		"over http, with only Referer": {[]string{"Referer", "http://evil.example/page"}, false},
		"a Referer that is none":       {[]string{"Referer", "%"}, false},
		"belfry's own page":            {[]string{"Sec-Fetch-Site", "same-origin"}, true},
		"the address line":             {[]string{"Sec-Fetch-Site", "none"}, true},
		"its own page over http":       {[]string{"Referer", "http://belfry.example/account"}, true},
		"a page that is trusted": {[]string{"Sec-Fetch-Site", "same-site", "Referer",
			"http://belfry.example/account"}, true},
		"a program": {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newAttackFixture(t)
			ada := p.newBrowser()
			ada.wantStatus(ada.register("ada@example.com", "the password of ada"), http.StatusNoContent)
			me := ada.currentUser()
			if c.links {
				ada.loginByProvider("666", c.headers...)
			} else {
				r := ada.wantStatus(ada.request("GET", "/auth/github", "", c.headers...), http.StatusFound)
				if to := r.Header.Get("Location"); !strings.HasSuffix(to, "?reason=origin") ||
					len(r.Header["Set-Cookie"]) > 0 {
					t.Errorf("refused with %s, %v", to, r.Header)
				}
			}
			if ada.currentUser() != me {
				t.Error("the session has ended")
			}
			back := p.newBrowser()
			back.loginByProvider("666")
			if linked := back.currentUser() == me; linked != c.links {
				t.Errorf("linked: %t", linked)
			}
		})
	}
}
