package login_test

import (
	"fmt"
	"strings"
	"testing"

	"belfry/pkg/api/apitest"
	"belfry/test/kit/authenticator"
)

// Each of two tabs asks for a challenge. Each answer finds its own, in whatever order they are sent, and uses up that
// alone, also if it is wrong.
func TestPasskeysInTwoTabs(t *testing.T) {
	f := apitest.StartLogin(t, 1, withPasskeys)[0]
	bearer := []string{"Authorization", "Bearer " + f.Register("ada@example.com", "a fine password")}
	key := authenticator.New(t, authenticator.ES256, ownOrigin)
	options, set := challenge(f, "/auth/passkeys/registration", bearer...)
	f.Do("POST", "/auth/passkeys", bodyOf(key.Create(options), ""), append(bearer, "Cookie", set)...).Want(201)
	elsewhere := func(y *authenticator.Ceremony) { y.Origin = "http://evil.example" }
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		var tabs [2][]byte
		var own [2]string
		tabs[0], own[0] = challenge(f, "/auth/passkey/options")
		tabs[1], own[1] = challenge(f, "/auth/passkey/options", "Cookie", own[0])
		both := own[0] + "; " + own[1]
		for _, tab := range order {
			r := f.Do("POST", "/auth/passkey", bodyOf(key.Get(tabs[tab]), ""), "Cookie", both).Want(204)
			other, _, _ := strings.Cut(own[1-tab], "=")
			if value, removed := cookie(r, other); value != "" || removed {
				t.Errorf("the cookie of the other tab: %v", r.Cookies())
			}
		}
		tabs[0], own[0] = challenge(f, "/auth/passkey/options")
		tabs[1], own[1] = challenge(f, "/auth/passkey/options", "Cookie", own[0])
		both = own[0] + "; " + own[1]
		f.Do("POST", "/auth/passkey", bodyOf(key.Get(tabs[order[0]], elsewhere), ""), "Cookie", both).Want(403)
		f.Do("POST", "/auth/passkey", bodyOf(key.Get(tabs[order[0]]), ""), "Cookie", both).Want(403)
		f.Do("POST", "/auth/passkey", bodyOf(key.Get(tabs[order[1]]), ""), "Cookie", both).Want(204)
	}
	// The cookies of challenges are of no use for the answer to another.
	mine, _ := challenge(f, "/auth/passkey/options")
	_, theirs := challenge(f, "/auth/passkey/options")
	f.Do("POST", "/auth/passkey", bodyOf(key.Get(mine), ""), "Cookie", theirs).Want(403)
}

// Pages that are opened again and again do not fill the requests of a browser with cookies: the oldest are removed.
func TestChallengesOfABrowserAreFew(t *testing.T) {
	f := apitest.StartLogin(t, 1, withPasskeys)[0]
	var cookies []string
	for i := range 12 {
		cookies = append(cookies, fmt.Sprintf("belfry-passkey-%012d=x", i))
	}
	r := f.Do("POST", "/auth/passkey/options", "", "Cookie", strings.Join(cookies, "; ")).Want(200)
	removed := 0
	for _, c := range r.Cookies() {
		if c.MaxAge < 0 {
			if want := fmt.Sprintf("belfry-passkey-%012d", removed); c.Name != want {
				t.Errorf("%s is removed, want %s", c.Name, want)
			}
			removed++
		}
	}
	if removed != 5 {
		t.Errorf("%d are removed", removed)
	}
}
