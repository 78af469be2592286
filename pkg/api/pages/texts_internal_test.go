package pages

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/net/html"

	"belfry/pkg/account"
	"belfry/pkg/texts"
)

var (
	action = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
	empty  = regexp.MustCompile(`data-[a-z]+=""`) // of partial attributes
	usedID = regexp.MustCompile(`Text "([^"]+)"`)
)

func sources(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, err := fs.ReadDir(builtIn, "templates")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".html") {
			continue
		}
		text, err := builtIn.ReadFile("templates/" + entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		all[entry.Name()] = string(text)
	}
	return all
}

// All that people read on a page is a text with an id: templates have no words of their own.
func TestTemplatesHaveNoWordsOfTheirOwn(t *testing.T) {
	seen := 0
	for name, source := range sources(t) {
		source = strings.NewReplacer("<noscript>", "", "</noscript>", "").Replace(source) // its elements are tokens, too
		tokens := html.NewTokenizer(strings.NewReader(empty.ReplaceAllString(action.ReplaceAllString(source, ""), "")))
		for {
			kind := tokens.Next()
			if kind == html.ErrorToken {
				break
			}
			seen++
			token := tokens.Token()
			if kind == html.TextToken && strings.ContainsFunc(token.Data, unicode.IsLetter) {
				t.Errorf("%s has the words %q", name, strings.TrimSpace(token.Data))
			}
			for _, a := range token.Attr {
				if slices.Contains([]string{"alt", "title", "aria-label", "placeholder"}, a.Key) && a.Val != "" {
					t.Errorf("%s has the words %s=%q", name, a.Key, a.Val)
				}
			}
		}
	}
	if seen < 500 {
		t.Errorf("%d tokens were seen", seen)
	}
}

// Each id in a template is that of a text, and each text is used by a template or below one of the ids in code.
func TestTemplatesUseTheTextsThatThereAre(t *testing.T) {
	used := map[string]bool{}
	for name, source := range sources(t) {
		for _, found := range usedID.FindAllStringSubmatch(source, -1) {
			if used[found[1]] = true; !texts.English().Own(found[1]) {
				t.Errorf("%s uses the text %s, which does not exist", name, found[1])
			}
		}
	}
	inCode := []string{"time", "account.session", "account.sessionCurrent", "account.deviceOn", "account.unknownDevice",
		"accountProblem.", "formProblem.", "done.", "failure.", "nameProblem.", "outcome.", "problem.",
		"mails."}
	for _, id := range texts.English().IDs() {
		if !used[id] && !slices.ContainsFunc(inCode, func(known string) bool {
			return id == known || strings.HasSuffix(known, ".") && strings.HasPrefix(id, known)
		}) {
			t.Errorf("nothing uses the text %s", id)
		}
	}
}

// The texts of methods have German ones, too.
func TestTheTextsOfMethodsAreTranslated(t *testing.T) {
	languages, err := account.Languages("")
	if err != nil {
		t.Fatal(err)
	}
	methods := 0
	for _, m := range account.About(true, true) {
		methods++
		for id, text := range m.TextsByID() {
			if *text != "" && (!languages.Of("de").Own(id) || languages.Of("en").Raw(id) != *text) {
				t.Errorf("%s is not translated: %s", id, *text)
			}
		}
		if german := account.In(languages.Of("de"), m.Method); m.Answer != "" && german.Answer == m.Answer {
			t.Errorf("%s is asked for in English", m.Name)
		}
	}
	if methods < 5 {
		t.Errorf("%d methods were seen", methods)
	}
}

// A page of a failure explains each type of problems in its language.
func TestEachTypeOfProblemsHasAText(t *testing.T) {
	reference, err := os.ReadFile("../../../docs/reference/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	_, types, _ := strings.Cut(string(reference), "## Problem types")
	languages, err := account.Languages("")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^### (\S+)$`).FindAllStringSubmatch(types, -1)
	for _, f := range found {
		if id := "problem." + f[1]; !languages.Of("en").Own(id) || !languages.Of("de").Own(id) {
			t.Errorf("there is no text %s", id)
		}
	}
	if len(found) < 15 {
		t.Errorf("%d types were seen", len(found))
	}
}

// The backgrounds by which a color is judged are those of the style sheet.
func TestColorsAreJudgedOnTheBackgroundsOfTheStyleSheet(t *testing.T) {
	css, err := builtIn.ReadFile("templates/" + styleFile)
	if err != nil {
		t.Fatal(err)
	}
	light, dark, ok := strings.Cut(string(css), "@media (prefers-color-scheme: dark)")
	if !ok || !strings.Contains(light, "--ground: "+lightGround.String()) ||
		!strings.Contains(dark, "--panel: "+darkPanel.String()) ||
		!strings.Contains(dark, "--on-accent: "+darkText.String()) {
		t.Error("the style sheet has other colors")
	}
}
