package pages_test

import (
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"belfry/pkg/account"
	"belfry/pkg/account/sessions"
	"belfry/pkg/api/pages"
	"belfry/pkg/texts"
)

// everyPage has a URL of each case of a page.
var everyPage = []string{"/", "/?validation=email", "/login", "/login?reason=denied", "/register", "/register?mail=sent",
	"/register?login=a%40example.com&token=abc", "/recovery", "/recovery?mail=sent", "/recovery?password=set",
	"/recovery?login=a%40example.com&token=abc", "/login/mail", "/login/mail?mail=sent", "/login/mail?browser=other",
	"/login/mail?mail=sent&reason=denied", "/login/mail?login=a%40example.com&token=abc", "/login/address",
	"/login/address?change=kept", "/login/address?change=undo&login=a%40example.com&token=abc",
	"/login/address?change=confirm&login=a%40example.com&token=abc", "/login-failed", "/login-failed?reason=rejected",
	"/login-failed?done=login", "/second-factor", "/second-factor?factors=totp+email+recovery+passkey",
	"/second-factor?factors=email&mail=sent&reason=denied", "/account", "/account?reason=last&setup=totp",
	"/account?outcome=proven", "/auth/authorize?" + loopbackRequest}

const loopbackRequest = "code_challenge=0123456789012345678901234567890123456789abc&code_challenge_method=S256&redirect_uri=http%3A%2F%2F127.0.0.1%3A1%2Fin&response_type=code"

func withApplication(o *account.Options) { o.Redirects = []string{"http://127.0.0.1/in"} }

// anID is an id in place of its text.
var anID = regexp.MustCompile(`>\s*[a-z][A-Za-z]+\.[a-z][A-Za-z-]+\s*<|"[a-z][A-Za-z]+\.[a-z][A-Za-z]+"`)

// Each page is in the language of the browser, with and without branding: its own words, those of methods, of results and
// of failures.
func TestEveryPageIsInTheLanguageOfTheBrowser(t *testing.T) {
	for name, change := range map[string][]any{"plain": nil, "branded": branded(t, png)} {
		f := start(t, append(change, withPasskeys, withApplication,
			func(o *account.Options) { o.MFA.Policy = sessions.MFAOptional })...)
		me := f.Register("ada@example.com", "a fine password")
		for _, l := range (*texts.Catalog)(nil).Languages() {
			for _, path := range everyPage {
				for _, token := range []string{"", me} {
					r := f.Do("GET", path, "", "Accept-Language", l.Tag()+"-CH;q=0.9", "Cookie", "belfry="+token).Want(200)
					r.HasHeader("Content-Language", l.Tag())
					if !strings.Contains(r.Text, `<html lang="`+l.Tag()+`">`) ||
						!strings.Contains(strings.Join(r.Header["Vary"], ", "), "Accept-Language") {
						t.Errorf("%s, %s: not in %s: %v\n%.60s", name, path, l.Tag(), r.Header["Vary"], r.Text)
					}
					if found := anID.FindString(r.Text); found != "" && !strings.Contains(found, ".example.") {
						t.Errorf("%s, %s in %s has the id %s", name, path, l.Tag(), found)
					}
					if l.Tag() != "en" {
						hasNoEnglish(t, l, path, r.Text)
					}
				}
			}
		}
	}
}

// hasNoEnglish checks that a page has no English text for which its language has another one.
func hasNoEnglish(t *testing.T, l *texts.Language, path, page string) {
	t.Helper()
	page = html.UnescapeString(page)
	for _, id := range texts.English().IDs() {
		english := texts.English().Raw(id)
		if len(english) > 4 && !strings.HasPrefix(id, "mails.") && english != l.Raw(id) &&
			regexp.MustCompile(`[>"]\s*`+regexp.QuoteMeta(english)+`\s*[<"]`).MatchString(page) {
			t.Errorf("%s in %s has the English text %s: %s", path, l.Tag(), id, english)
		}
	}
	for _, m := range account.About(true, true) {
		for id, text := range m.TextsByID() {
			if *text != "" && *text != l.Raw(id) && strings.Contains(page, ">"+*text+"<") {
				t.Errorf("%s in %s has the English text %s: %s", path, l.Tag(), id, *text)
			}
		}
	}
}

// A language of a folder is used like the embedded ones, and templates of a folder use texts.
func TestAFolderAddsALanguageForTemplatesOfAFolder(t *testing.T) {
	folder, theme := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(folder, "he.yaml"): "register: {title: הרשמה}",
		filepath.Join(folder, "fr.yaml"): "register: {title: \"S’inscrire\"}\nvalidated: {welcome: 'Bonjour {user} & <b>'}",
		filepath.Join(theme, "validated.html"): `{{define "title"}}{{.Text "register.title"}}{{end}}{{define "content"}}` +
			`<p>{{.Text "validated.welcome" "user" .User}}</p><a title="{{.Text "login.title"}}">{{.Language}}</a>{{end}}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	languages, err := account.Languages(folder)
	if err != nil {
		t.Fatal(err)
	}
	templates, err := pages.Load(theme)
	if err != nil {
		t.Fatal(err)
	}
	f := start(t, func(o *account.Options) { o.Languages = languages }, withTemplates(templates))
	token := f.Register("ada@example.com", "a fine password")
	r := f.Do("GET", "/?validation=email", "", "Accept-Language", "fr-CA, en;q=0.1", "Cookie", "belfry="+token).Want(200)
	contains(t, r, `<html lang="fr">`, "<h1>S’inscrire</h1>", "<p>Bonjour ", " &amp; &lt;b&gt;</p>",
		`<a title="Log in">fr</a>`)
	contains(t, f.Do("GET", "/register", "", "Accept-Language", "he-IL").Want(200), `<html lang="he" dir="rtl">`, "הרשמה")
}
