package search

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// TestAPhraseTakesNoCombinations: a word with accents may be in an index as two, and a phrase has thirty of them.
func TestAPhraseTakesNoCombinations(t *testing.T) {
	const n, most = 12, 20_000 // allocations: 4,096 combinations of twelve words take more
	text := strings.TrimSpace(strings.Repeat("résumés ", n))
	l, err := languageOf("en")
	if err != nil {
		t.Fatal(err)
	}
	if words := l.words(text, nil); len(words[0].stems) != 2 {
		t.Fatalf("%q has the stems %q", words[0].written, words[0].stems)
	}
	for _, q := range []string{`"` + text + `"`, strings.ReplaceAll(text, " ", "-"),
		strings.ReplaceAll(text, " ", "-") + "*"} {
		eachWay(t, "en", []string{text, text + " " + text, "résumés"}, func(t texts) {
			t.finds(q, "0 1")
			if took := testing.AllocsPerRun(1, func() { _, _ = t.find(q) }); took > most {
				t.Errorf("%s takes %.0f allocations", q, took)
			}
		})
	}
}

// TestAPhraseIsInOneText: not in two of an array, and not in two fields.
func TestAPhraseIsInOneText(t *testing.T) {
	for _, language := range []string{"", "en", "fr"} {
		eachWay(t, language, []string{"white\nwhale", "gray\nthe white whale", "whale\nwhite", "white\ngray whale",
			"été à mer\nété blanc"}, func(t texts) {
			for q, want := range map[string]string{`"white whale"`: "1", "white-whale": "1", "white whale": "0 1 2 3",
				`"été blanc"`: "4", `"ete mer"`: "", `"mer ete"`: ""} {
				t.finds(q, want)
			}
		})
	}
}

// asked counts how often a search asks whether anybody waits for it.
type asked struct {
	context.Context
	times int
}

func (a *asked) Err() error { a.times++; return a.Context.Err() }

// TestASearchOfLongTextsEnds: it asks for each text, which may be long, whether anybody waits.
func TestASearchOfLongTextsEnds(t *testing.T) {
	all := make([]string, 20)
	for i := range all {
		all[i] = "white whale"
	}
	eachWay(t, "", all, func(t texts) {
		parts, err := t.parts(`"white whale"`)
		if err != nil {
			t.Fatal(err)
		}
		s := store.TextSearch{Fields: []string{"text"}, Limit: 5, Only: &policy.Selection{Every: true}}
		ctx := &asked{Context: t.Context()}
		if t.settings.Rule != "" {
			_, _, err = t.searchOwn(ctx, parts, s)
		} else {
			q, errOf := t.queryOf(parts, s.Fields)
			if errOf != nil {
				t.Fatal(errOf)
			}
			_, _, err = t.search(ctx, q, s)
		}
		if err != nil || ctx.times < len(all) {
			t.Errorf("asked %d times: %v", ctx.times, err)
		}
	})
}

// TestWordsFollowEachOther compares with what is the same and slow.
func TestWordsFollowEachOther(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	some := func(n int) (all []string) {
		for range n {
			all = append(all, string(rune('a'+random.IntN(3))))
		}
		return all
	}
	for range 2000 {
		var field [][]string // texts of an array, with words
		for range 1 + random.IntN(3) {
			field = append(field, some(random.IntN(10)))
		}
		words := [][]string{some(1)}
		for range random.IntN(4) {
			words = append(words, some(random.IntN(3)))
		}
		alike := firstAlike(words)
		found, want := make([][]where, len(words)), 0
		for i := range words {
			if alike[i] != i {
				continue
			}
			for _, word := range words[i] {
				for at, text := range field {
					for j, is := range text {
						if is == word {
							found[i] = append(found[i], whereOf(uint64(j+1), []uint64{uint64(at)}))
						}
					}
				}
			}
		}
		for _, text := range field {
			for from := range text {
				follow := true
				for i, here := range words {
					follow = follow && (len(here) == 0 || from+i < len(text) && slices.Contains(here, text[from+i]))
				}
				if follow {
					want++
				}
			}
		}
		if got := sequences(words, alike, found); got != want {
			t.Fatalf("%q in %q: %d, expected %d", words, field, got, want)
		}
	}
}
