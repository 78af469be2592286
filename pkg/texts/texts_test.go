package texts_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/texts"
)

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestTheLanguageIsThatOfTheHeader(t *testing.T) {
	c, err := texts.Load(folder(t, map[string]string{"fr.yaml": "login: {title: Connexion}", "de-AT.yaml": ""}), nil)
	if err != nil {
		t.Fatal(err)
	}
	for accept, want := range map[string]string{
		"": "en", "de": "de", "de-CH,de;q=0.9": "de", "de-AT": "de-AT", "en-GB,en;q=0.8,de;q=0.5": "en", "fr-CA": "fr",
		"ja,fr;q=0.3": "fr", "ja": "en", "*": "en", "de;q=x": "en", "\x00": "en",
		"de, ja-JP-mac": "de", "de;q=0.9, xx": "de", "abcdefghi;q=0.8, fr;q=0.5, de;q=0.9": "de", "fr;q=bad,de": "de",
		"de;q=0,fr": "fr", ",,de,,": "de",
		strings.Repeat("de,", 1000): "en",
	} {
		if got := c.Match(accept).Tag(); got != want {
			t.Errorf("%.40q: %s, want %s", accept, got, want)
		}
	}
	header := http.Header{"Accept-Language": {"xx", "fr;q=0.5", "de"}}
	if got := c.Match(texts.Accepted(header)).Tag(); got != "de" {
		t.Errorf("several fields: %s", got)
	}
	var none *texts.Catalog
	if none.Match("de").Tag() != "de" || none.Of("de").Tag() != "de" || none.Of("xx").Tag() != "en" {
		t.Error("without a catalog there are not the embedded languages")
	}
}

// A language shows texts of its parent, and then English ones, where it lacks its own. A file replaces single texts.
func TestALanguageFallsBack(t *testing.T) {
	c, err := texts.Load(folder(t, map[string]string{
		"fr.yaml":    "login: {title: Connexion}\n",
		"de-AT.yaml": "login: {title: Servus}\n",
		"en.yaml":    "validated: {welcome: 'Hi {user}!'}\n",
		"pl.yaml":    "account: {codesLeft: {one: '{count} kod', few: '{count} kody', many: '{count} kodów', other: '{count} kodu'}}\n",
		"README.md":  "not a language", ".x.yaml": "{{",
	}), map[string]string{"method.word.answer": "Your word"})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ tag, id, want string }{
		{"fr", "login.title", "Connexion"}, {"fr", "login.button", "Log in"}, {"de-AT", "login.title", "Servus"},
		{"de-AT", "login.button", "Anmelden"}, {"en", "validated.welcome", "Hi Ada!"},
		{"de", "validated.welcome", "Willkommen, Ada."}, {"fr", "validated.welcome", "Hi Ada!"},
		{"de", "method.word.answer", "Your word"}, {"de", "no.such", "no.such"},
	} {
		if got := c.Of(x.tag).Text(x.id, "user", "Ada"); got != x.want {
			t.Errorf("%s of %s: %q, want %q", x.id, x.tag, got, x.want)
		}
	}
	for n, want := range map[int]string{1: "1 kod", 3: "3 kody", 5: "5 kodów", 22: "22 kody"} {
		if got := c.Of("pl").Fill("account.codesLeft", map[string]any{"count": n}, nil); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	// The form of a text is that of the language that has it.
	for _, n := range []int{0, 21} {
		if fr, en := c.Of("fr"), c.Of("en"); fr.Fill("account.codesLeft", map[string]any{"count": n}, nil) !=
			en.Fill("account.codesLeft", map[string]any{"count": n}, nil) {
			t.Errorf("%d in French, which lacks the text, is not as in English", n)
		}
	}
	at := time.Date(2026, 3, 1, 9, 5, 0, 0, time.FixedZone("", 3600))
	if en, de := c.Of("en").Time(at), c.Of("de").Time(at); en != "2026-03-01 08:05 UTC" ||
		de != "01.03.2026, 08:05 Uhr (UTC)" {
		t.Error(en, de)
	}
}

func TestFaultsOfFilesSayWhereAndWhat(t *testing.T) {
	for name, x := range map[string]struct {
		file, text, want string
	}{
		"no YAML at all":        {"fr.yaml", "login:\n - a\n b", "fr.yaml"},
		"a misspelled id":       {"fr.yaml", "login:\n  titel: X", "fr.yaml, line 2: there is no text login.titel: did you mean login.title?"},
		"a section of none":     {"fr.yaml", "zzzzzzzzzz: {a: b}", "there is no text zzzzzzzzzz: remove it"},
		"a section as a text":   {"fr.yaml", "login: X", "there is no text login"},
		"a text as a section":   {"fr.yaml", "login: {title: {a: b}}", "login.title: expected a text"},
		"a list":                {"fr.yaml", "[a]", "expected texts by their ids"},
		"a placeholder":         {"fr.yaml", "validated: {welcome: 'Salut {nom}'}", "validated.welcome has no placeholder {nom}: expected {user}"},
		"a placeholder of none": {"fr.yaml", "login: {title: 'Salut {nom}'}", "login.title has no placeholder {nom}: expected none"},
		"a brace":               {"fr.yaml", "validated: {welcome: 'Salut {user'}", "has a brace that is not of a placeholder"},
		"an empty text":         {"fr.yaml", "login: {title: ' '}", "login.title: expected a text"},
		"no text":               {"fr.yaml", "login: {title: }", "login.title: expected a text"},
		"a text without bound":  {"fr.yaml", "login: {title: " + strings.Repeat("x", 17<<10) + "}", "more than 16384 bytes"},
		"a plural of nothing":   {"fr.yaml", "login: {title: {one: a, other: b}}", "login.title: expected a text"},
		"an unknown form":       {"fr.yaml", "account: {codesLeft: {dual: a, other: b}}", "account.codesLeft.dual: expected a text for zero"},
		"no form other":         {"fr.yaml", "account: {codesLeft: {one: a}}", "lacks the form other"},
		"a text twice":          {"fr.yaml", "login: {title: a}\nlogin: {title: b}", "login"},
		"no YAML":               {"fr.yaml", "login: {", "fr.yaml"},
		"not UTF-8":             {"fr.yaml", "login: {title: \xff}", "not UTF-8"},
		"no language":           {"french.yaml", "", "french.yaml: expected the tag of a language and .yaml"},
		"an underscore":         {"pt_BR.yaml", "", "pt_BR.yaml: expected the tag"},
		"another extension":     {"fr.yml", "", "fr.yml: expected the tag"},
		"capital letters":       {"fr.YAML", "", "fr.YAML: expected the tag"},
		"a file without bound":  {"fr.yaml", strings.Repeat("#\n", 200<<10), "256 KiB"},
	} {
		_, err := texts.Load(folder(t, map[string]string{x.file: x.text}), nil)
		if errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
	}
	if _, err := texts.Load(filepath.Join(t.TempDir(), "none"), nil); errs.KindOf(err) != errs.Invalid {
		t.Error(err)
	}
}
