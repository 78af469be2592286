package prose_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"belfry/test/manual/prose"
)

func TestFindings(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("word ", 41)) + "."
	short := strings.TrimSpace(strings.Repeat("word ", 15)) + "."
	for name, row := range map[string]struct {
		page string
		want []string // parts of messages, in order
	}{
		"plain":           {"# Title\n\nA store holds objects. They are JSON.\n", nil},
		"a long sentence": {"Short one.\n\nW" + long[1:] + "\n", []string{"a sentence of 41 words"}},
		"a long item of a list": {"- Short one.\n- W" + long[1:] + "\n- Short.\n",
			[]string{"a sentence of 41 words"}},
		"long on average": {"W" + strings.TrimSuffix(strings.Repeat("ord w", 30), " w") + ".\n",
			[]string{"on average"}},
		"a long paragraph":          {strings.Repeat("W"+short[1:]+" ", 6) + "\n", []string{"a paragraph of 90 words"}},
		"abbreviations end nothing": {"Use a word, e.g. This one, and so on.\n", nil},
		"tables are left out":       {"| a | b |\n|---|---|\n| " + long + " | that is none |\n", nil},
		"code is left out":          {"```\nis none " + long + "\n```\n\n    is none\n\nSee `is none` there.\n", nil},
		"html is left out":          {"<p>is none</p>\n", nil},
		"links are read":            {"See [where it is none](https://example.com/a/b.c).\n", []string{`"is none"`}},
		"a heading":                 {"# Who is told\n", []string{`"told"`, `"Who"`}},
		"a question":                {"## What is a store?\n", nil},
		"an empty subject":          {"What a user owns is deleted.\n", []string{`"What"`}},
		"has not": {"An object that has not its owner. It has not changed.\n",
			[]string{`"has not its"`}},
		"spelling": {"The behaviour is normalised.\n", []string{`"behaviour"`, `"normalised"`}},
	} {
		t.Run(name, func(t *testing.T) {
			found := prose.Check([]byte(row.page)).Findings
			for i := range max(len(found), len(row.want)) {
				switch {
				case i >= len(found):
					t.Errorf("nothing of %q", row.want[i])
				case i >= len(row.want):
					t.Errorf("line %d: %s", found[i].Line, found[i].Message)
				case !strings.Contains(found[i].Message, row.want[i]):
					t.Errorf("%q, want %q", found[i].Message, row.want[i])
				}
			}
		})
	}
}

func TestLinesAreThoseOfTheSentence(t *testing.T) {
	page := prose.Check([]byte("# Title\n\nFirst one.\nSecond one\nis here. Third\none is told.\n"))
	var lines []int
	for _, s := range page.Sentences {
		lines = append(lines, s.Line)
	}
	if len(lines) != 3 || lines[0] != 3 || lines[1] != 4 || lines[2] != 5 || len(page.Findings) != 1 ||
		page.Findings[0].Line != 5 {
		t.Errorf("sentences at %v, findings %v", lines, page.Findings)
	}
	if page.Words() != 10 || page.Paragraphs != 1 || page.Longer(3) != 2 {
		t.Errorf("%d words, %d paragraphs, %d long sentences", page.Words(), page.Paragraphs, page.Longer(3))
	}
}

func TestCommentsAndMessagesOfCode(t *testing.T) {
	half := strings.TrimSpace(strings.Repeat("word ", 25))
	for name, row := range map[string]struct {
		source string
		want   []string
	}{
		"comments and messages": {
			"// F is whatever there is.\n//\n// It has\n// none.\n//\n//\tis none\nfunc F() {\n\tg(`x\n is none of " +
				"them`, \"is none\", \"a key that is none at all\") // and anew\n}\n",
			[]string{`3 "whatever"`, `5 "has none"`, `11 "anew"`, `11 "is none"`},
		},
		"messages of several literals": {
			"var n = 1\n\nfunc F() {\n\tg(\"a key that has \" +\n\t\t\"none of them\", \"one \"+f(\"a key that is " +
				"none at all\")+\" and whatever there is\", 1+n)\n}\n",
			[]string{`6 "has none"`, `7 "whatever"`, `7 "is none"`},
		},
		"quoted texts": {
			"const a = \"a key that is none at all\" // CEL's text\nconst b = \"a key that is none at all\" " +
				"// a text\n",
			[]string{`4 "is none"`},
		},
		"items of a list": {
			"// F has steps:\n//   - " + half + "\n//   - " + half + "\n//   - What is\n//     anew\n//\n//  1. " +
				half + "\n//  2. " + half + "\n//\n// Its sentence: " + half + "\n// and " + half + "\nfunc F() {}\n",
			[]string{`6 "anew"`, `6 "What"`, `12 a sentence of 53 words, at most 40 are allowed`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			page, err := prose.CheckCode([]byte("package p\n\n" + row.source))
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, f := range page.Findings {
				found = append(found, fmt.Sprintf("%d %s", f.Line, strings.SplitN(f.Message, ":", 2)[0]))
			}
			if !slices.Equal(found, row.want) {
				t.Errorf("found %q, want %q", found, row.want)
			}
		})
	}
	if _, err := prose.CheckCode([]byte("package")); err == nil {
		t.Error("a file that is not Go is read")
	}
}
