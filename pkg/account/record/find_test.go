package record_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"belfry/pkg/account/record"
)

func TestPartsOfTexts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":             "",
		"Al":           "al",
		"Ada":          "ada ad",
		"a@ex.org":     "a@e a@ @ex ex. ex x.o .or org or",
		"Straße":       "str st tra ras ass sse",
		"ÉTÉ":          "ete et",
		"ﬁsh":          "fis fi ish",
		"Łódź":         "lod lo odz",
		"李小龍":          "李小龍 李 李小 小 小龍 龍",
		"Ada Lovelace": "ada ad lov lo ove vel ela lac ace",
	} {
		if got := strings.Join(record.Parts([]string{text}), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if n := len(record.Parts([]string{strings.Repeat("abcdefghijklmnopqrstuvw ", 1000)})); n > 256 {
		t.Errorf("%d parts of a long text", n)
	}
}

// A word that is in a text has only parts that the text has.
func TestAWordIsFoundByEachOfItsParts(t *testing.T) {
	t.Parallel()
	text := "Zoë.Müller-Lüdenscheidt@example.com 王小明"
	parts := record.Parts([]string{text})
	for _, word := range []string{"zoe", "muller", "DENSCH", "@exa", "le.co", "mü", "ex", "王", "小明"} {
		of := record.PartsOf(record.Folded(word))
		if len(of) == 0 {
			t.Errorf("%s can't be found", word)
		}
		for _, part := range of {
			if !slices.Contains(parts, part) {
				t.Errorf("%s: the text lacks %q", word, part)
			}
		}
	}
	for _, short := range []string{"", "a", "@", "@x", ".."} {
		if of := record.PartsOf(short); len(of) > 0 {
			t.Errorf("%q has %q", short, of)
		}
	}
}

func TestTextsOfUsersAndIdents(t *testing.T) {
	t.Parallel()
	f := record.UserFinder{Title: []string{"handle"}, Private: []string{"maidenName"}}
	got := f.Texts([]byte(`{"uuid":"u","name":"Ada","lastName":"Lovelace","handle":"ada1","maidenName":"Byron",` +
		`"_name":"x","names":["y"],"note":"z","contactEmail":"a@b.org"}`))
	if text := strings.Join(got, " "); text != "Ada Lovelace ada1 a@b.org" {
		t.Errorf("of a user: %s", text)
	}
	for body, want := range map[string]string{
		`{"type":"email","_id":"ada@example.com","profile":{"email":"ada@example.com"}}`: "ada@example.com",
		`{"type":"email","_id":"a@xn--mller-kva.de"}`:                                    "a@müller.de a@xn--mller-kva.de",

		`{"type":"github","profile":{"id":42,"login":"ada","name":"Ada L","email":"a@b.org","bio":"x"}}`: "ada Ada L a@b.org",

		`{"type":"passkey","_id":"abcdef"}`: "",
	} {
		if text := strings.Join(record.IdentTexts([]byte(body)), " "); text != want {
			t.Errorf("%s: %s, want %s", body, text, want)
		}
	}
}

// A search folds the texts of many users, who choose them: each is short, and there are few.
func TestTextsAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\ufdfa", 100_000)
	fields := "{"
	for i := range 1000 {
		fields += fmt.Sprintf(`"name%d":"x",`, i)
	}
	fields += `"login":"` + long + `"}`
	f := record.UserFinder{Title: []string{"title"}}
	for what, texts := range map[string][]string{
		"of a long name":          f.Texts([]byte(`{"name":"` + long + `"}`)),
		"of many names":           f.Texts([]byte(fields)),
		"of a profile":            record.IdentTexts([]byte(`{"type":"x","profile":` + fields + `}`)),
		"of a long name in it":    record.IdentTexts([]byte(`{"type":"x","profile":{"name":"` + long + `"}}`)),
		"of a domain without end": record.IdentTexts([]byte(`{"type":"email","_id":"a@xn--` + long + `"}`)),
	} {
		n := 0
		for _, text := range texts {
			n = max(n, utf8.RuneCountInString(text))
		}
		if len(texts) == 0 || len(texts) > 32 || n > 256 {
			t.Errorf("%s: %d texts of up to %d characters", what, len(texts), n)
		}
	}
}
