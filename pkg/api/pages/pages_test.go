package pages_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belfry/pkg/account"
	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/api/login"
	"belfry/pkg/api/pages"
	"belfry/pkg/errs"
)

func start(t *testing.T, change ...any) *apitest.Front {
	t.Helper()
	templates, err := pages.Load("")
	if err != nil {
		t.Fatal(err)
	}
	site := func(o *api.Options) {
		o.Site = &pages.Options{
			Templates: templates,
			Paths: map[string]string{"start": "/", "login": "/login", "register": "/register",
				"recovery": "/recovery", "mail": "/login/mail", "address": "/login/address", "failed": "/login-failed",
				"second-factor": "/second-factor", "account": "/account"},
			Links: pages.Links{Start: "/", Login: "/login", Register: "/register", Recovery: "/recovery",
				MailLogin: "/login/mail", OpenAPI: "/openapi.json", Account: "/account"},
			Stores:    []pages.Store{{Name: "Books", URL: "/books", List: true}},
			Redirects: []string{"/", "https://app.example.org/in?x=1", "https://app.example.org/out"},
		}
	}
	account := func(o *login.Options) { o.AccountRedirect = "/account" }
	return apitest.StartLogin(t, 1, append([]any{site, account}, change...)...)[0]
}

func withTemplates(templates *pages.Templates) func(*api.Options) {
	return func(o *api.Options) { o.Site.Templates = templates }
}

func validatesFirst(o *account.Options) { o.Email.PostValidation = false }

// contains checks which texts a reply has; those that begin with ! it must not have.
func contains(t *testing.T, r apitest.Reply, texts ...string) {
	t.Helper()
	for _, text := range texts {
		absent, not := strings.CutPrefix(text, "!")
		if not == strings.Contains(r.Text, absent) {
			t.Errorf("%s: %q, wanted %t, in\n%s", r.Request.URL, absent, !not, r.Text)
		}
	}
}

func TestEveryPageIsForWhatItsRequestSays(t *testing.T) {
	first, later := start(t, validatesFirst), start(t)
	const typed = `<form method="get" action="/auth/email/callback">`
	for _, c := range []struct {
		f     *apitest.Front
		path  string
		texts []string
	}{
		{later, "/", []string{"belfry is running", `href="/login"`, `href="/openapi.json"`, `href="/books"`,
			"!asyncapi", "!Logged in", "!console"}},
		{later, "/?validation=email", []string{"Your e-mail address is confirmed", `href="/login"`}},
		{later, "/login", []string{`action="/auth/email"`, `type="password"`, `href="/recovery"`, "!register\" value"}},
		{later, "/register", []string{`action="/auth/email"`, `name="register" value="true"`,
			`autocomplete="new-password"`, "!name=\"token\""}},
		{first, "/register", []string{`action="/auth/email/validation"`, `!type="password"`}},
		{first, "/register?login=ada%40example.com&token=abc",
			[]string{`action="/auth/email"`, `name="token" value="abc"`, `value="ada@example.com" readonly`}},
		{first, "/register?mail=sent",
			[]string{"We have sent you a mail", "!<form method=\"post\" action=\"/auth/email", typed}},
		{later, "/recovery", []string{`action="/auth/email/recovery"`, `!type="password"`}},
		{later, "/recovery?mail=sent", []string{"If there is an account", "!method=\"post\"", typed}},
		{later, "/recovery?login=ada%40example.com&token=abc", []string{`name="token" value="abc"`, `type="password"`}},
		{later, "/recovery?login=ada%40example.com&token=abc&invited=true", []string{"<h1>Choose a password</h1>",
			`name="_page" value="invitation"`, "!Set a new password"}},
		{later, "/recovery?invited=true", []string{"Set a new password", "!Choose a password"}},
		{later, "/recovery?password=set", []string{"Your new password is set", "!<input"}},
		{later, "/login/mail", []string{`action="/auth/email/code"`, `name="login"`, `!name="code"`}},
		{later, "/login/mail?mail=sent&login=ada%40example.com",
			[]string{`name="code"`, `value="ada@example.com"`, "If there is an account"}},
		{later, "/login/mail?mail=sent&login=ada%40example.com&reason=denied",
			[]string{`name="code"`, `value="ada@example.com"`, "That code is wrong", "!If there is an account"}},
		{later, "/second-factor?factors=totp+email", []string{`id="code"`, "Send a code by mail", "!id=\"mailed\""}},
		{later, "/second-factor?factors=totp+email&mail=sent&reason=denied",
			[]string{"That was not right", `id="code"`, `id="mailed"`, "Send another code by mail"}},
		// passkeys are not configured, and others are no second factors
		{later, "/second-factor?factors=passkey+totp+password+code",
			[]string{`id="code"`, `name="factors" value="totp"`}},
		{later, "/login/mail?login=ada%40example.com&token=abc",
			[]string{`name="token" value="abc"`, "<strong>ada@example.com</strong>", `action="/auth/email/code"`}},
		{later, "/login/mail?browser=other&token=abc", []string{"another browser", "!<form", "!abc"}},
		{later, "/login/address?change=undo&login=ada%40example.com&token=abc", []string{`name="token" value="abc"`,
			`action="/auth/email/address"`, "Undo the change", `name="keep" value="true"`, "It was me"}},
		{later, "/login/address?change=kept", []string{"can no longer be undone", "!<form"}},
		{later, "/login/address?change=confirm&login=ada%40example.com&token=abc", []string{"Log in first", "!<form"}},
		{later, "/login/address", []string{"!method=\"post\"", typed}},
		{later, "/login-failed?reason=taken", []string{"already belongs to an account", `<code>taken</code>`}},
		{later, "/login-failed?reason=common", []string{"one of the most common passwords", `<code>common</code>`}},
		{later, "/login-failed?reason=weak", []string{"too easy to guess", `<code>weak</code>`}},
		{later, "/login-failed?reason=breached", []string{"appears in data breaches", `<code>breached</code>`}},
		{later, "/login-failed?reason=made+up", []string{"The login failed.", "!made up"}},
		{later, "/login-failed", []string{"The login failed."}},
		{later, "/login?login=%22%3E%3Cscript%3Ealert(1)%3C/script%3E", []string{"!<script>", "&lt;script"}},
		{later, "/register?login=x&token=%22%3E%3Cimg+src=x%3E", []string{"!<img"}},
	} {
		r := c.f.Do("GET", c.path, "").Want(200)
		r.HasHeader("Content-Type", "text/html; charset=utf-8").HasHeader("Cache-Control",
			"no-store").HasHeader("Referrer-Policy", "same-origin")
		policy := strict
		if page, _, _ := strings.Cut(c.path, "?"); page == "/login" || page == "/register" || page == "/recovery" {
			policy += "; script-src 'self'"
		}
		r.HasHeader("Content-Security-Policy", policy)
		contains(t, r, append(c.texts, "!<script>", "! style=", "! onclick", "!<style")...)
		if n := strings.Count(r.Text, "<script"); n != strings.Count(r.Text,
			`<script src="/auth/pages.js" defer></script>`) {
			t.Errorf("%s has %d scripts", c.path, n)
		}
		c.f.Do("HEAD", c.path, "").Want(200)
	}
	later.Do("POST", "/login", "{}").Want(405)
	style := later.Do("GET", "/auth/pages.css", "").Want(200).HasHeader("Content-Type",
		"text/css; charset=utf-8").HasHeader("Cache-Control", "no-cache")
	later.Do("GET", "/auth/pages.css", "", "If-None-Match", style.Header.Get("Etag")).Want(304)
	for _, route := range later.API.Routes() {
		if strings.HasSuffix(route, " /") || strings.Contains(route, "login-failed") ||
			strings.Contains(route, "pages.css") {
			t.Errorf("%s is a route of the API", route)
		}
	}
}

func TestPagesNameWhoIsLoggedIn(t *testing.T) {
	f := start(t)
	for user, shown := range map[string]string{
		`"login":"eve@example.com","name":"<b>Eve</b>"`: "&lt;b&gt;Eve&lt;/b&gt;",
		`"login":"bob@example.com","name":" "`:          `Logged in as <strong><a href="/account">0`} {
		token := apitest.Token(f.Do("POST", "/auth/email",
			`{"register":true,"password":"a fine password",`+user+`}`).Want(204))
		r := f.Do("GET", "/", "", "Cookie", "belfry="+token).Want(200)
		contains(t, r, shown, `action="/auth/logout"`, `!href="/login"`, "!<b>")
		contains(t, f.Do("GET", "/?validation=email", "", "Cookie", "belfry="+token).Want(200), "You are logged in",
			shown[:8])
		contains(t, f.Do("GET", "/?change=confirmed&validation=email", "", "Cookie", "belfry="+token).Want(200),
			"Your new e-mail address is confirmed", "!You are logged in")
		contains(t, f.Do("GET", "/register", "", "Cookie", "belfry="+token).Want(200), "added to your account",
			`autocomplete="current-password"`)
	}
	contains(t, f.Do("GET", "/", "", "Cookie", "belfry=stale").Want(200), `!action="/auth/logout"`)
	contains(t, f.Do("GET", "/", "", "Authorization", "Bearer stale").Want(200), `!action="/auth/logout"`)
}

func TestAFolderReplacesTemplatesFileByFile(t *testing.T) {
	write := func(files map[string]string) string {
		folder := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return folder
	}
	templates, err := pages.Load(write(map[string]string{
		"login.html":     `{{define "title"}}Enter{{end}}{{define "content"}}<p>our own {{.Actions.Login}}</p>{{end}}`,
		"failed.html":    `<!doctype html><title>whole</title>{{.Message}}`,
		"pages.css":      "body { color: red }",
		"authorize.html": `{{define "title"}}Allow{{end}}{{define "content"}}<p>our own {{.Application.Name}} {{.Application.Request}}</p>{{end}}`,
		"logo.svg":       "<svg/>", ".hidden.html": "{{",
	}))
	if err != nil {
		t.Fatal(err)
	}
	f := start(t, func(o *api.Options) { o.Site.Templates = templates },
		func(o *account.Options) { o.Redirects = []string{"http://127.0.0.1/in"} })
	const request = "code_challenge=0123456789012345678901234567890123456789abc&code_challenge_method=S256&redirect_uri=http%3A%2F%2F127.0.0.1%3A1%2Fin&response_type=code"
	contains(t, f.Do("GET", "/auth/authorize?"+request, "").Want(200), "<title>Allow",
		"our own http://127.0.0.1/in code_challenge=", `class="host"`)
	contains(t, f.Do("GET", "/login", "").Want(200), "<title>Enter", "our own /auth/email", `class="host"`)
	contains(t, f.Do("GET", "/login-failed?reason=denied", "").Want(200), "<title>whole</title>The e-mail address",
		`!class="host"`)
	contains(t, f.Do("GET", "/register", "").Want(200), "<h1>Register</h1>")
	if css := f.Do("GET", "/auth/pages.css", "").Want(200).Text; css != "body { color: red }" {
		t.Error(css)
	}

	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"a syntax error": {map[string]string{"login.html": "{{if}}"}, "login.html:1"},
		"an unknown field": {
			map[string]string{"recovery.html": `{{define "title"}}{{end}}{{define "content"}}{{.Nope}}{{end}}`},
			"Nope"},
		"in one case alone": {map[string]string{"register.html": `{{if .MailSent}}{{.Nope}}{{end}}`}, "Nope"},
		"no title":          {map[string]string{"login.html": `{{define "content"}}x{{end}}`}, "title"},
		"a layout":          {map[string]string{"layout.html": `{{template "nothing"}}`}, "nothing"},
		"a misspelled name": {map[string]string{"logn.html": ""},
			"logn.html, which replaces nothing: expected layout.html, pages.css, start.html"},
		"a file without bound": {map[string]string{"login.html": strings.Repeat("x", 300<<10)}, "256 KiB"},
		"a page without bound": {map[string]string{"login.html": strings.Repeat("{{printf \"%9000d\" 1}}", 40)},
			"256 KiB"},
	} {
		_, err := pages.Load(write(c.files))
		if errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := pages.Load(filepath.Join(t.TempDir(), "none")); errs.KindOf(err) != errs.Invalid {
		t.Error(err)
	}
}
