package api_test

import (
	"net/http"
	"testing"
)

// A page of another site redirects the browser of a user to a provider, where
// the browser is logged in as the attacker: that identity must not be linked.
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
		"a page that is trusted":       {[]string{"Sec-Fetch-Site", "same-site", "Referer", "http://belfry.example/account"}, true},
		"a program":                    {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newAttackFixture(t)
			ada := p.newBrowser()
			ada.wantStatus(ada.register("ada@example.com", "the password of ada"), http.StatusNoContent)
			me := ada.currentUser()
			ada.loginByProvider("666", c.headers...)
			back := p.newBrowser()
			back.loginByProvider("666")
			if linked := back.currentUser() == me; linked != c.links {
				t.Errorf("linked: %t", linked)
			}
		})
	}
}
