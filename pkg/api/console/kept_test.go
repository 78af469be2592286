package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"belfry/pkg/account"
	"belfry/pkg/api/console"
	"belfry/pkg/api/login"
)

// TestTheEndOfASessionDoesNotLoseWhatWasTyped: the reply has it, escaped, for another try after a login in another tab.
func TestTheEndOfASessionDoesNotLoseWhatWasTyped(t *testing.T) {
	t.Parallel()
	l := startDishes(t)
	stored := l.save("Dishes", "soup", `{"title":"Soup"}`)
	const one = "/console/objects/Dishes/object/soup"
	values := inputs(t, l.get(l.Admin, one))
	values.Set("/title", `"><b>Stew`)
	r := is(t, l.post("", one, values.Encode(), "Referer", l.URL+one), http.StatusUnauthorized)
	shows(t, r, "Nothing has been saved", "You have been logged out", `target="_blank" rel="noopener"`, "Save again",
		`name="/title" value="&#34;&gt;&lt;b&gt;Stew"`)
	lacks(t, r, "<b>Stew", `<nav class="nav"`, "ada@example.com")
	if now := l.read("Dishes", "soup"); now.Revision != stored.Revision {
		t.Error("it has been saved without a session")
	}
	again := inputs(t, r)
	for name := range values {
		if again.Get(name) != values.Get(name) {
			t.Errorf("%s is %q, not %q", name, again.Get(name), values.Get(name))
		}
	}
	again.Set("/title", "Stew")
	leads(t, l.post(l.Admin, one, again.Encode()), one)

	// A secret is typed again.
	lacks(t, is(t, l.post("", one, "text=x&secret%3Akey=bait-secret"), http.StatusUnauthorized), "bait-secret")

	// A script shows the same in the page that has the text.
	r = is(t, l.post("", one+"/check", values.Encode(), "Hx-Request", "true"), http.StatusUnauthorized).
		HasHeader("Hx-Redirect", "")
	shows(t, r, "You have been logged out", "in a new tab")
	lacks(t, r, "<html", "Stew")

	// It reads no more of a stranger's form than others do.
	values.Set("text", strings.Repeat("a", 64<<10))
	shows(t, is(t, l.post("", one, values.Encode()), http.StatusUnauthorized), "too large")
}

// TestWhatWasTypedIsKeptForOwnPagesAlone: a page of another origin gets nothing back, and makes no page for a login.
func TestWhatWasTypedIsKeptForOwnPagesAlone(t *testing.T) {
	t.Parallel()
	l := startDishes(t, func(o *login.Options) { o.TrustedOrigins = []string{"https://app.example.org"} })
	for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example.org"},
		{"Origin", "null"}, {"Origin", "https://app.example.org"}} {
		for _, token := range []string{"", l.User, l.Admin} {
			r := is(t, l.post(token, "/console/objects/Dishes/new", "text=bait-text&mode=json", headers...),
				http.StatusForbidden)
			lacks(t, r, "bait-text", "Save again")
		}
	}
	// Who is no admin gets no page with it either.
	lacks(t, is(t, l.post(l.User, "/console/objects/Dishes/new", "text=bait-text"), http.StatusForbidden), "bait-text")
	// A form with a password is never sent back.
	r := l.post("", "/console/users", "login=a@example.com&password=bait-text")
	lacks(t, r, "bait-text")
}

// TestAScriptAsksWhetherTheSessionCounts before it sends a form.
func TestAScriptAsksWhetherTheSessionCounts(t *testing.T) {
	t.Parallel()
	c := &clock{}
	f := start(t, console.Options{}, c.use, func(*account.Options) {})
	is(t, f.get(f.Admin, "/console/session"), http.StatusNoContent)
	is(t, f.get("", "/console/session"), http.StatusUnauthorized)
	is(t, f.get(f.User, "/console/session"), http.StatusForbidden)
	c.advance(10 * 365 * 24 * time.Hour)
	is(t, f.get(f.Admin, "/console/session"), http.StatusUnauthorized)
}
