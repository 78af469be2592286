package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"belfry/pkg/account"
	"belfry/pkg/account/keys"
	"belfry/pkg/api/apitest"
	"belfry/pkg/api/console"
	"belfry/pkg/api/login"
	"belfry/pkg/store"
)

func withStores(t *testing.T, names ...string) console.Options {
	t.Helper()
	var all []store.Options
	for _, name := range names {
		all = append(all, store.Options{Name: name})
	}
	return console.Options{Objects: stores(t, nil, all...)}
}

func TestOnlyAdminsSeeTheConsole(t *testing.T) {
	t.Parallel()
	f := start(t, withStores(t, "Books"))
	for _, path := range []string{"/console/objects", "/console", "/console/", "/console/nothing",
		"/console/objects/Books"} {
		r := is(t, f.get("", path), http.StatusSeeOther)
		if to := r.Header.Get("Location"); !strings.HasPrefix(to, "/console/login") {
			t.Errorf("%s leads nobody to %s", path, to)
		}
		r = is(t, f.get(f.User, path), http.StatusForbidden)
		shows(t, r, "not an admin", "Log out")
		if strings.Contains(r.Text, "Objects") || strings.Contains(r.Text, "Books") {
			t.Errorf("%s shows a user who is not an admin: %s", path, r.Text)
		}
	}
	leads(t, f.get(f.Admin, "/console"), "/console/objects")
	shows(t, is(t, f.get(f.Admin, "/console/objects"), http.StatusOK), "Books", `aria-current="page">Objects`)
	shows(t, is(t, f.get(f.Admin, "/console/nothing"), http.StatusNotFound), "no page /console/nothing",
		`href="/console/objects"`)
}

func TestAnAPIKeyOfAnAdminDoesNotOpenTheConsole(t *testing.T) {
	t.Parallel()
	f := start(t, withStores(t, "Books"))
	ada, err := f.Auth.Admin.FindUser(t.Context(), "ada@example.com")
	f.Must(err)
	_, key, err := f.Auth.Admin.IssueKey(t.Context(), ada, keys.New{Name: "backup"})
	f.Must(err)
	is(t, f.get("", "/console/objects", "Authorization", "Bearer "+key), http.StatusForbidden)
	is(t, f.get("", "/console/objects", "Authorization", "Bearer "+f.Admin), http.StatusOK)
}

func TestAnAdminWhoIsNoAdminAnyMoreIsOut(t *testing.T) {
	t.Parallel()
	f := start(t, withStores(t, "Books"))
	ada, err := f.Auth.Admin.FindUser(t.Context(), "ada@example.com")
	f.Must(err)
	_, err = f.Auth.Admin.SetAdmin(t.Context(), ada.UUID, false)
	f.Must(err)
	is(t, f.get(f.Admin, "/console/objects"), http.StatusForbidden)
}

func TestEveryReplyForbidsFramesScriptsOfOthersAndCaches(t *testing.T) {
	t.Parallel()
	f := start(t, withStores(t, "Books"),
		func(o *login.Options) { o.TrustedOrigins = []string{"https://app.example.org"} })
	for _, token := range []string{"", f.User, f.Admin} {
		for _, path := range []string{"/console/objects", "/console/login", "/console/none"} {
			r := f.get(token, path, "Origin", "https://app.example.org")
			policy := r.Header.Get("Content-Security-Policy")
			for _, part := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';",
				"frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
				if !strings.Contains(policy, part) {
					t.Errorf("%s: the policy lacks %s: %s", path, part, policy)
				}
			}
			r.HasHeader("X-Frame-Options", "DENY").HasHeader("Cache-Control", "no-store").HasHeader("Referrer-Policy",
				"same-origin").
				HasHeader("X-Content-Type-Options", "nosniff").
				HasHeader("Access-Control-Allow-Origin", "").HasHeader("Access-Control-Allow-Credentials", "")
			if inline := regexp.MustCompile(`(?i)<script>|<style|\sstyle=|\son[a-z]+=|hx-on|javascript:`).
				FindString(r.Text); inline != "" {
				t.Errorf("%s has %q, which the policy forbids", path, inline)
			}
		}
	}
}

// The console takes nothing from pages of other origins, those included that may use the API.
func TestPostsOfOtherOriginsAreRefused(t *testing.T) {
	t.Parallel()
	f := start(t, withStores(t, "Books"), func(o *login.Options) { o.TrustedOrigins = []string{"https://app.example.org"} })
	for _, headers := range [][]string{
		{"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"},
		{"Origin", "https://evil.example.org"},
		{"Origin", "https://app.example.org"},
		{"Origin", "https://app.example.org", "Sec-Fetch-Site", "same-site"},
		{"Origin", "null"},
	} {
		is(t, f.post(f.Admin, "/console/logout", "", headers...), http.StatusForbidden)
		is(t, f.post("", "/console/login", "login=ada@example.com&password=a+fine+password", headers...),
			http.StatusForbidden).HasHeader("Set-Cookie", "")
	}
	is(t, f.get(f.Admin, "/console/objects"), http.StatusOK)
	leads(t, f.post(f.Admin, "/console/logout", "", "Sec-Fetch-Site", "same-origin"), "/console/login")
	is(t, f.get(f.Admin, "/console/objects"), http.StatusSeeOther)
}

func TestLoggingInAtTheConsole(t *testing.T) {
	t.Parallel()
	f := start(t, withStores(t, "Books"))
	shows(t, is(t, f.get("", "/console/login?next=/console/objects?q=1"), http.StatusOK),
		`value="/console/objects?q=1"`, `for="password"`)

	r := is(t, f.post("", "/console/login", "login=ada@example.com&password=wrong"), http.StatusForbidden)
	shows(t, r, "password is wrong", `value="ada@example.com"`)
	if r.Header.Get("Set-Cookie") != "" || strings.Contains(r.Text, `value="wrong"`) {
		t.Errorf("a wrong password is shown or gets a cookie: %s", r.Text)
	}
	r = f.post("", "/console/login", "login=ada@example.com&password=a+fine+password&next=/console/objects")
	leads(t, r, "/console/objects")
	cookie := r.Cookies()[0]
	if cookie.Name != "belfry" || !cookie.HttpOnly || cookie.Path != "/" || cookie.SameSite != http.SameSiteLaxMode {
		t.Errorf("another cookie than that of the API: %+v", cookie)
	}
	is(t, f.get(cookie.Value, "/console/objects"), http.StatusOK)
	f.Me(cookie.Value).Want(http.StatusOK)
	leads(t, f.get(cookie.Value, "/console/login"), "/console")
}

func TestALoginLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	f := start(t, withStores(t, "Books"))
	for _, next := range []string{
		"https://evil.example.org/", "//evil.example.org/console", "/\\evil.example.org", "/console/../auth",
		"/consoles", "javascript:alert(1)",
		"/console//evil.example.org/", "\thttps://evil.example.org", "/auth", "console/objects",
	} {
		r := f.post("", "/console/login",
			"login=ada@example.com&password=a+fine+password&next="+strings.ReplaceAll(next, "\t", "%09"))
		leads(t, r, "/console")
	}
}

// The console guesses passwords no faster than the API.
func TestTheLimitsOfLoginsHoldAtTheConsole(t *testing.T) {
	t.Parallel()
	f := start(t, withStores(t, "Books"), func(o *account.Options) { o.Limits.Address = 3 })
	limited := 0
	for range 8 {
		r := f.post("", "/console/login", "login=bob@example.com&password=wrong")
		if r.StatusCode == http.StatusTooManyRequests {
			limited++
			if r.Header.Get("Retry-After") == "" {
				t.Error("429 without Retry-After")
			}
		}
	}
	if limited == 0 {
		t.Error("eight wrong passwords from one address were all checked")
	}
}

func TestHTMXIsSentToTheLoginAsAWhole(t *testing.T) {
	t.Parallel()
	f := start(t, withStores(t, "Books"))
	r := is(t, f.get("", "/console/objects", "Hx-Request", "true", "Hx-Current-Url",
		"https://x.example/console/objects?a=1"), http.StatusOK)
	if r.Text != "" || r.Header.Get("Hx-Redirect") != "/console/login?next=%2Fconsole%2Fobjects%3Fa%3D1" {
		t.Errorf("%v %s", r.Header, r.Text)
	}
	r = is(t, f.get(f.Admin, "/console/none", "Hx-Request", "true"), http.StatusNotFound)
	if strings.Contains(r.Text, "<html") {
		t.Errorf("htmx gets a whole page: %s", r.Text)
	}
}

func TestWhatIsTypedIsEscaped(t *testing.T) {
	t.Parallel()
	f := start(t, withStores(t, "Books"))
	const hostile = `"><script>`
	typed := url.QueryEscape(hostile)
	for _, r := range []apitest.Reply{
		f.get("", "/console/login?next=/console/"+typed),
		f.post("", "/console/login", "password=x&login="+typed),
		f.get(f.Admin, "/console/"+url.PathEscape(hostile)),
		f.get(f.Admin, "/console/objects/"+url.PathEscape(hostile)),
		f.get(f.Admin, "/console/objects/Books?filter="+typed+"&sort="+typed),
		f.post(f.Admin, "/console/objects/Books/new", "text="+typed),
		f.post(f.Admin, "/console/objects/Books/check", "text="+typed),
	} {
		if strings.Contains(r.Text, hostile) || strings.Contains(r.Text, "<script>") {
			t.Errorf("%s is not escaped: %s", r.Request.URL, r.Text)
		}
	}
}

func TestAssetsAreKeptForGoodUnderTheHashOfTheirContent(t *testing.T) {
	t.Parallel()
	f := start(t, withStores(t, "Books"))
	page := f.get("", "/console/login")
	found := regexp.MustCompile(`/console/assets/[\w.-]+`).FindAllString(page.Text, -1)
	if len(found) < 4 {
		t.Fatalf("assets: %v", found)
	}
	for _, url := range found {
		r := is(t, f.get("", url), http.StatusOK)
		r.HasHeader("Cache-Control", "public, max-age=31536000, immutable")
		if r.Text == "" || strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") {
			t.Errorf("%s: %v", url, r.Header)
		}
	}
	for _, name := range []string{"console.css", "htmx.LICENSE", "..%2fconsole.go", "none.js",
		"console.0000000000000000.css"} {
		f.get("", "/console/assets/"+name).Want(http.StatusNotFound)
	}
}

// Over https another host of the domain can't set the cookie of a notice, no more than that of a session.
func TestACookieOfTheConsoleIsOfThisHostAlone(t *testing.T) {
	t.Parallel()
	for base, prefix := range map[string]string{"https://belfry.example.org": "__Host-",
		"http://belfry.example.org": ""} {
		f := start(t, withStores(t, "Books"), func(o *account.Options) { o.BaseURL = base })
		session := prefix + "belfry=" + f.Admin
		r := is(t, f.post("", "/console/objects/Books/new", "text=%7B%7D", "Cookie", session), http.StatusSeeOther)
		set := r.Cookies()
		if len(set) != 1 || set[0].Name != prefix+"belfry-console-notice" || set[0].Path != "/" || !set[0].HttpOnly ||
			set[0].Secure != (prefix != "") || set[0].MaxAge != 60 {
			t.Fatalf("%s: %+v", base, set)
		}
		notice := set[0].Value
		r = is(t, f.get("", "/console/objects", "Cookie", session+"; "+prefix+"belfry-console-notice="+notice),
			http.StatusOK)
		shows(t, r, "The object has been created.")
		if gone := r.Cookies(); len(gone) != 1 || gone[0].Name != set[0].Name || gone[0].Path != "/" ||
			gone[0].MaxAge >= 0 {
			t.Errorf("%s: the notice is not removed: %+v", base, gone)
		}
		if prefix != "" {
			r = is(t, f.get("", "/console/objects", "Cookie", session+"; belfry-console-notice="+notice), http.StatusOK)
			if strings.Contains(r.Text, "The object has been created.") {
				t.Error("a cookie that another host can set is shown")
			}
		}
	}
}
