package pages_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"belfry/internal/contrast"
	"belfry/pkg/account"
	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/api/pages"
	"belfry/pkg/errs"
)

const (
	png      = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
	hostile  = `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`
	htmlPage = "<!DOCTYPE html><html><script>alert(1)</script>"
)

func fileOf(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// branded has a name, a logo and a color.
func branded(t *testing.T, logo string) []any {
	t.Helper()
	picture, err := pages.LoadLogo(fileOf(t, "logo", logo))
	if err != nil {
		t.Fatal(err)
	}
	accent, err := pages.Accent("#7a1f5c")
	if err != nil {
		t.Fatal(err)
	}
	return []any{func(o *account.Options) { o.Name = "Ada & Co" },
		func(o *api.Options) { o.Site.Logo, o.Site.Accent = picture, accent }}
}

var logoURL = regexp.MustCompile(`src="(/auth/logo-[0-9a-f]{16}\.[a-z]+)"`)

// Each page shows the name and the logo. A drawing with a script is harmless in a page, and by itself.
func TestPagesShowTheBranding(t *testing.T) {
	f := start(t, branded(t, hostile)...)
	logo := ""
	for _, path := range []string{"/", "/login", "/register", "/recovery", "/login/mail", "/login/address",
		"/login-failed", "/second-factor", "/account"} {
		r := f.Do("GET", path, "").Want(200)
		contains(t, r, " · Ada &amp; Co</title>", "Ada &amp; Co</a>", "!belfry.example.org</a>")
		found := logoURL.FindStringSubmatch(r.Text)
		if found == nil {
			t.Fatalf("%s has no logo:\n%s", path, r.Text)
		}
		logo = found[1]
	}
	contains(t, f.Do("GET", "/", "").Want(200), "<h1>Ada &amp; Co is running</h1>")
	r := f.Do("GET", logo, "").Want(200).HasHeader("Content-Type", "image/svg+xml").HasHeader("X-Content-Type-Options",
		"nosniff").HasHeader("Cache-Control", "public, max-age=31536000, immutable")
	if policy := r.Header.Get("Content-Security-Policy"); !strings.HasSuffix(policy, "; sandbox") ||
		!strings.HasPrefix(policy, "default-src 'none'") || r.Text != hostile {
		t.Errorf("%s: %s", policy, r.Text)
	}
	f.Do("GET", "/auth/logo-0000000000000000.svg", "").Want(404)
	style := f.Do("GET", "/auth/pages.css", "").Want(200).Text
	if !strings.Contains(style, "--accent: #7a1f5c; --on-accent: #ffffff;") || strings.Count(style, "--accent:") != 4 {
		t.Error(style)
	}
	refused := f.Do("POST", "/auth/email", "login=x", "Content-Type", "", "Content-Type",
		"application/x-www-form-urlencoded", "Origin", "https://evil.example", "Accept",
		"text/html,application/xhtml+xml")
	if refused.StatusCode != http.StatusForbidden {
		t.Error(refused.StatusCode)
	}
	contains(t, refused, "Ada &amp; Co</a>", logo)
}

func TestLogosAreJudgedByTheirContent(t *testing.T) {
	for name, content := range map[string]string{"png": png, "svg": hostile, "webp": "RIFF\x24\x00\x00\x00WEBPVP8 ",
		"jpg": "\xff\xd8\xff\xe0\x00\x10JFIF"} {
		if _, err := pages.LoadLogo(fileOf(t, "logo.txt", content)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]struct{ content, want string }{
		"a page":               {htmlPage, "the logo is of the type text/html: expected a PNG, SVG, WebP or JPEG"},
		"another picture":      {"GIF89a\x01\x00\x01\x00", "of the type image/gif"},
		"a document":           {"%PDF-1.7\n", "of the type application/pdf"},
		"nothing":              {"", "expected a PNG"},
		"a file without bound": {png + strings.Repeat("x", pages.MaxLogo), "256 KiB"},
	} {
		if _, err := pages.LoadLogo(fileOf(t, "logo.png", c.content)); errs.KindOf(err) != errs.Invalid ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := pages.LoadLogo(filepath.Join(t.TempDir(), "none")); errs.KindOf(err) != errs.Invalid {
		t.Error(err)
	}
	if none, err := pages.LoadLogo(""); none != nil || err != nil {
		t.Error(none, err)
	}
}

var accents = regexp.MustCompile(`--accent: (#[0-9a-f]{6}); --on-accent: (#[0-9a-f]{6})`)

// Links can be read in both schemes, and so can the text of buttons. A color with which that is not possible is refused,
// with one with which it is.
func TestColorsAreReadable(t *testing.T) {
	parsed := func(text string) contrast.Color {
		c, err := contrast.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, color := range []string{"#1a5cb8", "#7a1f5c", "#000", "#0b6b2f", "#b00020"} {
		rules, err := pages.Accent(color)
		found := accents.FindAllStringSubmatch(string(rules), -1)
		if err != nil || len(found) != 2 {
			t.Fatalf("%s: %v %s", color, err, rules)
		}
		for i, background := range []string{"#f6f6f4", "#1c1f24"} {
			accent := parsed(found[i][1])
			if link := contrast.Ratio(accent, parsed(background)); link < 4.5 {
				t.Errorf("%s: links have %.2f:1 on %s", color, link, background)
			}
			if button := contrast.Ratio(accent, parsed(found[i][2])); button < 4.5 {
				t.Errorf("%s: buttons have %.2f:1", color, button)
			}
		}
	}
	for color, want := range map[string]string{
		"#ffcc00": "links of the color #ffcc00 have a contrast of 1.40:1 on the background #f6f6f4 of the pages: " +
			"expected at least 4.5:1, as of #",
		"#888": "links of the color #888888 have a contrast of 3.2", "#fff": "1.0",
	} {
		_, err := pages.Accent(color)
		if errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", color, err)
			continue
		}
		proposed := err.Error()[strings.LastIndex(err.Error(), "#"):]
		if _, err := pages.Accent(proposed); err != nil {
			t.Errorf("%s is proposed, and refused: %v", proposed, err)
		}
	}
}

// A form of belfry's own page leads back to it, with the reason there. The address that was entered is in the form again,
// once, and in no URL. Forms of other pages lead to the page of failures.
func TestAFailedFormLeadsBackToItsPage(t *testing.T) {
	f := start(t, func(o *account.Options) { o.Email.UniformErrors = true })
	f.Register("ada@example.com", "a fine password")
	send := func(path, form string, headers ...string) apitest.Reply {
		t.Helper()
		return f.Do("POST", path, form, append([]string{"Content-Type", "", "Content-Type",
			"application/x-www-form-urlencoded"}, headers...)...).Want(303)
	}
	for _, c := range []struct{ path, form, to, says string }{
		{"/auth/email", "_page=login&login=ada%40example.com&password=wrong", "/login?reason=denied", "is wrong"},
		{"/auth/email", "_page=login&login=eve%40example.com&password=wrong", "/login?reason=denied", "is wrong"},
		{"/auth/email", "_page=login&login=eve%40example.com&password=", "/login?reason=invalid", "Enter an e-mail address and a password"},
		{"/auth/email", "_page=register&register=true&login=eve%40example.com&password=short", "/register?reason=invalid",
			"Check the e-mail address"},
		{"/auth/email", "_page=register&register=true&login=ada%40example.com&password=a+fine+password",
			"/register?reason=taken", "already belongs"},
		{"/auth/email/recovery", "_page=recovery&login=no+address", "/recovery?reason=invalid",
			">Check the e-mail address.<"},
		{"/auth/email/code", "_page=mail&login=no+address", "/login/mail?reason=invalid", ">Check the e-mail address.<"},
	} {
		r := send(c.path, c.form).HasHeader("Location", c.to).HasHeader("Cache-Control", "no-store")
		cookies := r.Cookies()
		if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].MaxAge != 300 ||
			cookies[0].SameSite != http.SameSiteLaxMode {
			t.Fatalf("%s: %v", c.form, cookies)
		}
		page := f.Do("GET", c.to, "", "Cookie", cookies[0].Name+"="+cookies[0].Value).Want(200)
		login := regexp.MustCompile(`login=([^&]+)`).FindStringSubmatch(c.form)[1]
		login = strings.NewReplacer("%40", "@", "+", " ").Replace(login)
		contains(t, page, `role="alert"`, c.says, `value="`+login+`"`)
		if gone := page.Cookies(); len(gone) == 0 || gone[0].Name != cookies[0].Name || gone[0].MaxAge >= 0 {
			t.Errorf("%s: %v", c.form, gone)
		}
		// Without a failure the page shows no address, and no cookie is read.
		contains(t, f.Do("GET", strings.Split(c.to, "?")[0], "", "Cookie", cookies[0].Name+"="+cookies[0].Value).Want(200),
			"!"+login, `!role="alert"`)
	}
	for _, page := range []string{"", "_page=https%3A%2F%2Fevil.example&", "_page=console&"} {
		send("/auth/email", page+"login=ada%40example.com&password=wrong").HasHeader("Location",
			"/out?reason=denied")
	}
	contains(t, f.Do("GET", "/login?reason=denied", "", "Cookie", "belfry-form=%3Cscript%3E").Want(200), `value=""`)
}
