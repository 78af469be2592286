package console_test

import (
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"belfry/pkg/account/admin"
	"belfry/pkg/account/keys"
	"belfry/pkg/object"
)

// While somebody types, the page stays: a whole address is a row, and a word that is too short an explanation.
func TestUsersAreFoundWhileSomebodyTypes(t *testing.T) {
	t.Parallel()
	f := startUsers(t)
	for q, want := range map[string]string{"b": "at least two characters", "bo": bob, "ob@ex": bob, bob: bob,
		"%40example": ada, "zz": "No user has"} {
		r := is(t, f.get(f.Admin, "/console/users?q="+q, "Hx-Request", "true"), http.StatusOK)
		shows(t, r, `<div id="found"`, want)
		if strings.Contains(r.Text, "<html") || r.Header.Get("Hx-Redirect") != "" {
			t.Errorf("%s: not a part of the page: %v %s", q, r.Header, r.Text)
		}
	}
	is(t, f.get(f.User, "/console/users?q=bo", "Hx-Request", "true"), http.StatusForbidden)
}

func TestAPIKeysOfAllUsersAreListed(t *testing.T) {
	t.Parallel()
	f := startUsers(t)
	ctx := f.Context()
	var ids []string
	for i, who := range []string{ada, bob, bob} {
		user, err := f.Auth.Admin.FindUser(ctx, who)
		f.Must(err)
		k := keys.New{Name: fmt.Sprint("key ", i), Rule: `method == "GET"`}
		if i == 1 {
			k.Expires = time.Now().Add(time.Hour)
		}
		info, token, err := f.Auth.Admin.IssueKey(ctx, user, k)
		f.Must(err)
		ids = append(ids, info.ID)
		if i == 2 {
			f.Do("GET", "/auth/me", "", "Authorization", "Bearer "+token).Want(http.StatusOK)
			f.Auth.Close() // the use is recorded
		}
	}
	order := func(sort string) (names []string) {
		t.Helper()
		r := is(t, f.get(f.Admin, "/console/users/keys?sort="+sort), http.StatusOK)
		for _, m := range regexp.MustCompile(`<th scope="row">(key \d)</th>`).FindAllStringSubmatch(r.Text, -1) {
			names = append(names, m[1])
		}
		return names
	}
	for sort, last := range map[string]string{"": "key 2", "unused": "key 2"} {
		if names := order(sort); len(names) != 3 || names[2] != last {
			t.Errorf("order %q: %v", sort, names)
		}
	}
	if names := order("recent"); len(names) != 3 || names[0] != "key 2" {
		t.Errorf("the most recently used: %v", names)
	}
	if names := order("expires"); len(names) != 3 || names[0] != "key 1" {
		t.Errorf("the next to expire: %v", names)
	}
	page := is(t, f.get(f.Admin, "/console/users/keys"), http.StatusOK)
	shows(t, page, "method ==", "/console/users/"+f.uuidOf(bob), "never")
	is(t, f.get(f.Admin, "/console/users/keys?sort=size"), http.StatusBadRequest)
	is(t, f.get(f.Admin, "/console/users/keys?after=%25"), http.StatusBadRequest)
	is(t, f.get(f.User, "/console/users/keys"), http.StatusForbidden)
	is(t, f.get("", "/console/users/keys"), http.StatusSeeOther)

	leads(t, f.post(f.Admin, "/console/users/"+f.uuidOf(ada)+"/keys/"+ids[0], "sort=recent"),
		"/console/users/keys?sort=recent")
	if names := order("unused"); len(names) != 2 {
		t.Errorf("after one is revoked: %v", names)
	}
	// Keys that end with their user's sessions are no longer valid.
	leads(t, f.post(f.Admin, "/console/users/"+f.uuidOf(bob)+"/sessions", ""), "/console/users/"+f.uuidOf(bob))
	if names := order("unused"); len(names) != 0 {
		t.Errorf("after all sessions of their user have ended: %v", names)
	}
}

func TestUsersAreFoundAndListedByPages(t *testing.T) {
	t.Parallel()
	f := startUsers(t)
	for q, who := range map[string]string{"BOB@example.com": bob, "%20bob@example.com%20": bob,
		"bob@example.com_email": bob, f.uuidOf(ada): ada} {
		leads(t, f.get(f.Admin, "/console/users?q="+q), "/console/users/"+f.uuidOf(who))
	}
	shows(t, is(t, f.get(f.Admin, "/console/go?q=ob@ex"), http.StatusOK), `<a href="/console/users/`+f.uuidOf(bob)+`">`)
	for _, q := range []string{"nobody@example.com", "a/b", "%3Cscript%3E"} {
		r := is(t, f.get(f.Admin, "/console/users?q="+q), http.StatusOK)
		shows(t, r, "No user has this in a name or an address")
		if strings.Contains(r.Text, "<script>") {
			t.Error("what was looked for is not escaped")
		}
	}
	shows(t, is(t, f.get(f.Admin, "/console/users?q=x"), http.StatusBadRequest), "at least two characters")
	is(t, f.get(f.Admin, "/console/users?q="+strings.Repeat("x", 1000)), http.StatusBadRequest)
	for i := range 60 {
		_, err := f.Auth.Admin.CreateUser(t.Context(), admin.NewUser{Machine: true,
			Fields: object.Object{"name": fmt.Appendf(nil, "%q", fmt.Sprint("<b>machine ", i))}})
		f.Must(err)
	}
	seen := map[string]bool{}
	links := regexp.MustCompile(`<th scope="row"><a href="(/console/users/[\w.@+-]+)">`)
	next := regexp.MustCompile(`href="(/console/users\?after=[^"]+)"`)
	path, pages := "/console/users", 0
	for path != "" {
		r := is(t, f.get(f.Admin, path), http.StatusOK)
		if strings.Contains(r.Text, "<b>machine") {
			t.Fatal("a name is not escaped")
		}
		for _, m := range links.FindAllStringSubmatch(r.Text, -1) {
			if seen[m[1]] {
				t.Errorf("%s is listed twice", m[1])
			}
			seen[m[1]] = true
		}
		pages++
		path = ""
		if m := next.FindStringSubmatch(r.Text); m != nil {
			path = m[1]
		}
	}
	if len(seen) != 62 || pages != 2 {
		t.Errorf("%d users on %d pages", len(seen), pages)
	}
	seen = map[string]bool{}
	next = regexp.MustCompile(`href="(/console/users\?after=[^"]+)"`)
	for path, pages = "/console/users?q=achin", 0; path != ""; pages++ {
		r := is(t, f.get(f.Admin, path), http.StatusOK)
		for _, m := range links.FindAllStringSubmatch(r.Text, -1) {
			seen[m[1]] = true
		}
		path = ""
		if m := next.FindStringSubmatch(r.Text); m != nil {
			path = html.UnescapeString(m[1])
		}
	}
	if len(seen) != 60 || pages != 2 {
		t.Errorf("%d machines on %d pages", len(seen), pages)
	}
	is(t, f.get(f.Admin, "/console/users?after=%25"), http.StatusBadRequest)
	is(t, f.get(f.Admin, "/console/users?q=machine&after=%25"), http.StatusBadRequest)
	is(t, f.get(f.Admin, "/console/users?after=AAAA"), http.StatusOK)
}
