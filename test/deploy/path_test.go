package deploy

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"belfry/test/backing"
	"belfry/test/kit"
	"belfry/test/mailbox"
	"belfry/test/process"
)

// placed is served behind each proxy, with a base URL that the test sets.
const placed = `
data: data
listen: 127.0.0.1:%d
baseURL: %s
proxies: [127.0.0.1]
bus: {listen: ""}
stores:
  Books: {expose: {list: true}}
  Users: {expose: {}}
mailers: {default: {type: smtp, host: localhost, port: %d, tls: none}}
authentication:
  redirects: ["http://127.0.0.1/signed-in"]
  passkeys: {}
  providers: {email: {postValidation: true, skipEmailValidation: true, mailInterval: 0s}}
`

// guest is a browser that finds a belfry behind a proxy under its base URL, wherever that is: it has cookies, sends the
// headers by which browsers say where a form comes from, and follows no redirect by itself.
type guest struct {
	t     *testing.T
	proxy string   // its address
	base  *url.URL // of belfry
	jar   http.CookieJar
}

func newGuest(t *testing.T, proxy, base string) *guest {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &guest{t: t, proxy: proxy, base: u, jar: jar}
}

// send sends a request for a path of the host, or for a URL of it.
func (g *guest) send(method, target, body string, headers ...string) answer {
	g.t.Helper()
	at, err := g.base.Parse(target)
	if err != nil || at.Host != g.base.Host || at.Scheme != g.base.Scheme {
		g.t.Fatalf("%s %s leads to another host than %s: %v", method, target, g.base, err)
	}
	req, err := http.NewRequestWithContext(g.t.Context(), method, g.proxy+at.RequestURI(), strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Host = g.base.Host
	req.Header.Set("Accept", "text/html,*/*;q=0.8")
	if method == http.MethodPost {
		req.Header.Set("Origin", g.base.Scheme+"://"+g.base.Host)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for pair := range slices.Chunk(headers, 2) {
		req.Header.Set(pair[0], pair[1])
	}
	for _, c := range g.jar.Cookies(at) {
		req.AddCookie(c)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	g.jar.SetCookies(at, res.Cookies())
	data, err := io.ReadAll(res.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header.Get("Etag"), res.Header, string(data)}
}

func (g *guest) want(status int, method, target, body string, headers ...string) answer {
	g.t.Helper()
	a := g.send(method, target, body, headers...)
	if a.status != status {
		g.t.Fatalf("%s %s: %d, want %d: %.300s", method, target, a.status, status, a.body)
	}
	return a
}

// below returns the path on the host of a route.
func (g *guest) below(route string) string { return g.base.Path + route }

// form sends a form, checks where that leads, and returns what is there.
func (g *guest) form(route string, fields url.Values, to string) answer {
	g.t.Helper()
	a := g.want(http.StatusSeeOther, http.MethodPost, g.below(route), fields.Encode())
	for _, c := range (&http.Response{Header: a.header}).Cookies() {
		wantName, wantPath := "belfry", g.base.Path
		if wantPath == "" {
			wantPath = "/"
		}
		if g.base.Scheme == "https" {
			wantName, wantPath = "__Host-belfry", "/"
		}
		if !strings.HasPrefix(c.Name, wantName) || c.Path != wantPath || c.Secure != (g.base.Scheme == "https") {
			g.t.Errorf("the form to %s sets %s", route, c)
		}
	}
	location := a.header.Get("Location")
	if location != g.below(to) {
		g.t.Fatalf("the form to %s leads to %s, want %s", route, location, g.below(to))
	}
	a = g.send(http.MethodGet, location, "")
	for range 3 {
		if location = a.header.Get("Location"); location == "" {
			break
		}
		if !strings.HasPrefix(location, g.below("/")) {
			g.t.Fatalf("the form to %s leads on to %s", route, location)
		}
		a = g.send(http.MethodGet, location, "")
	}
	if a.status != http.StatusOK {
		g.t.Fatalf("the form to %s leads to %d: %.300s", route, a.status, a.body)
	}
	return a
}

var named = regexp.MustCompile(`\s(href|src|action|data-options|data-step-up|data-document|hx-get|hx-post)="([^"]*)"`)

// page opens a page, checks that all that it names is below the base URL, and that its files are there.
func (g *guest) page(route, shows string) answer {
	g.t.Helper()
	a := g.want(http.StatusOK, http.MethodGet, g.below(route), "")
	if !strings.Contains(a.body, shows) {
		g.t.Errorf("%s does not show %q:\n%s", route, shows, a.body)
	}
	files := 0
	for _, place := range named.FindAllStringSubmatch(a.body, -1) {
		target := strings.ReplaceAll(place[2], "&amp;", "&")
		if target == "data:," || strings.HasPrefix(target, "#") || strings.HasPrefix(target, "?") {
			continue
		}
		if !strings.HasPrefix(target, g.below("/")) {
			g.t.Errorf("%s has %s", route, place[0])
			continue
		}
		if isFile := strings.Contains(target, "/assets/") || strings.HasSuffix(target, ".css") ||
			strings.HasSuffix(target, ".js"); isFile {
			file := g.want(http.StatusOK, http.MethodGet, target, "")
			if kind := file.header.Get("Content-Type"); strings.HasPrefix(kind, "text/html") || kind == "" ||
				file.body == "" {
				g.t.Errorf("%s is %q with %d bytes", target, kind, len(file.body))
			}
			files++
		}
	}
	if files == 0 {
		g.t.Errorf("%s has no files:\n%s", route, a.body)
	}
	return a
}

// way is how a proxy has belfry at a place of a host.
type way struct {
	name, path string
	start      func(t testing.TB, upstream string) *backing.HTTPProxy
}

// waysOf returns those of a proxy: at the root, and at a path that it passes on, or removes.
func waysOf(root func(testing.TB, string) *backing.HTTPProxy,
	at func(t testing.TB, upstream, path string, strip bool) *backing.HTTPProxy) []way {
	const path = "/api/v1"
	below := func(strip bool) func(testing.TB, string) *backing.HTTPProxy {
		return func(t testing.TB, upstream string) *backing.HTTPProxy { return at(t, upstream, path, strip) }
	}
	return []way{{"at the root", "", root}, {"at a path, which is passed on", path, below(false)},
		{"at a path, which is removed", path, below(true)}}
}

// Behind each proxy all that belfry names is where clients reach it, over http and https, at the root of a host and at
// a path.
func TestEverythingIsWhereTheProxyHasIt(t *testing.T) {
	for name, ways := range map[string][]way{
		"nginx":  waysOf(backing.StartNginx, backing.StartNginxAt),
		"Apache": waysOf(backing.StartApache, backing.StartApacheAt),
		"Caddy":  waysOf(backing.StartCaddy, backing.StartCaddyAt),
	} {
		for _, w := range ways {
			for _, origin := range []string{"http://localhost:8080", "https://belfry.example"} {
				t.Run(name+" "+w.name+", "+origin, func(t *testing.T) { throughProxy(t, w, origin) })
			}
		}
	}
}

func throughProxy(t *testing.T, w way, origin string) {
	port, mails, base := kit.FreePort(t), mailbox.Start(t), origin+w.path
	file := filepath.Join(t.TempDir(), "belfry.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, placed, port, base, mails.Port), 0o600); err != nil {
		t.Fatal(err)
	}
	belfry := process.ServePlain(t, file)
	proxy := w.start(t, fmt.Sprintf("127.0.0.1:%d", port))
	g := newGuest(t, strings.TrimSuffix(proxy.URL, w.path), base)

	if w.path != "" {
		g.want(http.StatusNotFound, http.MethodGet, "/login", "") // so that nothing below is right by accident
		a := g.send(http.MethodGet, w.path, "")
		// Its scheme is that of the proxy.
		if to, _ := url.Parse(a.header.Get("Location")); a.status/100 == 3 && to != nil {
			a = g.send(http.MethodGet, to.Path, "")
		}
		if a.status != http.StatusOK || !strings.Contains(a.body, "belfry is running") {
			t.Errorf("%s without a slash: %d %.300s", w.path, a.status, a.body)
		}
	}
	g.account(mails)
	g.objects()
	g.console(belfry.Banner)
	g.metadata()
}

// account registers, logs out, and sets a new password by the link of a mail.
func (g *guest) account(mails *mailbox.Server) {
	g.t.Helper()
	const login, password = "ada@example.com", "a fine password"
	g.page("/", "belfry is running")
	g.page("/login", "Log in")
	g.page("/register", "Register")
	g.want(http.StatusForbidden, http.MethodPost, g.below("/auth/email"), "", "Origin", "https://elsewhere.example")
	registered := g.form("/auth/email", url.Values{"register": {"true"}, "login": {login}, "password": {password}},
		"/?validation=email")
	if !strings.Contains(registered.body, "You are logged in") {
		g.t.Errorf("nobody is logged in:\n%s", registered.body)
	}
	g.page("/account", login)
	g.form("/auth/logout", nil, "/")
	g.page("/account", "Log in to see your account.")

	g.form("/auth/email/recovery", url.Values{"login": {login}}, "/recovery?mail=sent")
	link := mails.Await(g.t, login, 1)[0].Link()
	if !strings.HasPrefix(link, g.base.String()+"/auth/email/callback?") {
		g.t.Fatalf("the link of the mail is %s", link)
	}
	location := g.want(http.StatusFound, http.MethodGet, link, "").header.Get("Location")
	if !strings.HasPrefix(location, g.below("/recovery?")) {
		g.t.Fatalf("the link of the mail leads to %s", location)
	}
	g.page(strings.TrimPrefix(location, g.base.Path), "password")
	to, err := url.Parse(location)
	if err != nil {
		g.t.Fatal(err)
	}
	g.form("/auth/email/recovery",
		url.Values{"login": {login}, "token": {to.Query().Get("token")}, "password": {"another password"}},
		"/recovery?password=set")
	g.form("/auth/email", url.Values{"login": {login}, "password": {"another password"}}, "/?validation=email")
	if text := g.want(http.StatusOK, http.MethodGet, g.below("/auth"), "", "Accept",
		"application/json").body; !strings.Contains(text, `"url":"`+g.below("/auth/email")+`"`) {
		g.t.Errorf("the providers are %s", text)
	}
}

// objects follows the places of objects and of the pages of a list.
func (g *guest) objects() {
	g.t.Helper()
	for range 2 {
		created := g.want(http.StatusCreated, http.MethodPost, g.below("/books"), `{"title":"Emma"}`, "Content-Type",
			"application/json", "Accept", "application/json")
		location := created.header.Get("Location")
		if !strings.HasPrefix(location, g.below("/books/")) {
			g.t.Fatalf("Location: %s", location)
		}
		g.want(http.StatusOK, http.MethodGet, location, "")
	}
	link := g.want(http.StatusOK, http.MethodGet, g.below("/books?limit=1"), "").header.Get("Link")
	next, _, _ := strings.Cut(strings.TrimPrefix(link, "<"), ">")
	if !strings.HasPrefix(next, g.below("/books?")) {
		g.t.Fatalf("Link: %s", link)
	}
	g.want(http.StatusOK, http.MethodGet, next, "")
	if text := g.want(http.StatusOK, http.MethodGet, g.below("/openapi.json"), "").body; !strings.Contains(text,
		`"`+g.base.String()+`"`) {
		g.t.Errorf("the document does not name %s: %.300s", g.base, text)
	}
}

var adminLink = regexp.MustCompile(`(https?://\S+)(/console/first\?token=(\S+))`)

// console makes the first admin by the link that belfry prints, and opens pages of the console.
func (g *guest) console(banner string) {
	g.t.Helper()
	found := adminLink.FindStringSubmatch(banner)
	if found == nil || found[1] != g.base.String() {
		g.t.Fatalf("no link below %s:\n%s", g.base, banner)
	}
	g.form("/auth/logout", nil, "/")
	g.page(found[2], "Make me the admin")
	g.form("/console/first",
		url.Values{"token": {found[3]}, "login": {"root@example.com"}, "password": {"a fine password"}}, "/console")
	for _, route := range []string{"/console/objects/Books", "/console/objects/Books/new", "/console/live",
		"/console/api", "/console/users", "/console/system"} {
		g.page(route, "Log out")
	}
	g.form("/console/logout", nil, "/console/login")
	location := g.want(http.StatusSeeOther, http.MethodGet, g.below("/console/users"), "").header.Get("Location")
	if location != g.below("/console/login?next=%2Fconsole%2Fusers") {
		g.t.Errorf("the console leads to %s", location)
	}
}

// metadata finds the endpoints where RFC 8414 has them: a path of the issuer comes after the well-known one.
func (g *guest) metadata() {
	g.t.Helper()
	const known = "/.well-known/oauth-authorization-server"
	for _, target := range []string{known + g.base.Path, g.below(known)} {
		text := g.want(http.StatusOK, http.MethodGet, target, "", "Accept", "application/json").body
		if !strings.Contains(text, `"issuer":"`+g.base.String()+`"`) ||
			!strings.Contains(text, `"token_endpoint":"`+g.base.String()+`/auth/token"`) {
			g.t.Errorf("%s: %s", target, text)
		}
	}
	g.page("/auth/authorize?"+url.Values{
		"response_type": {"code"}, "redirect_uri": {"http://127.0.0.1:1/signed-in"}, "state": {"s"},
		"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"},
	}.Encode(), "wants to act in your name")
}
