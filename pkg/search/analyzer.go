package search

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/registry"
)

// Analyzers of an index, by how their names end: of texts, of what else begins as asked for, and of all beginnings.
const (
	asWords         = ""
	asBeginnings    = "-beginnings"
	asAllBeginnings = "-all-beginnings"
)

// analyzerOf returns the name of an analyzer. An index has it, so what it makes of texts changes together with form.
func analyzerOf(language, as string) string {
	name := "belfry-" + strconv.Itoa(form)
	if language != "" {
		name += "-" + language
	}
	return name + as
}

// analyzer has bleve index what a language makes of texts.
type analyzer struct {
	*language
	as string
}

func init() { //nolint:gochecknoinits // the registry of bleve is global
	for name := range specs {
		for _, as := range []string{asWords, asBeginnings, asAllBeginnings} {
			must(registry.RegisterAnalyzer(analyzerOf(name, as), func(map[string]any, *registry.Cache) (analysis.Analyzer, error) {
				l, err := languageOf(name)
				return analyzer{l, as}, err
			}))
		}
	}
}

func must(err error) {
	if err != nil {
		panic(err) // two of one name
	}
}

// Analyze implements analysis.Analyzer. Where a term is in the text, in bytes, nobody asks for.
func (a analyzer) Analyze(text []byte) analysis.TokenStream {
	words := a.analyzed(string(text))
	var tokens analysis.TokenStream
	switch a.as {
	case asWords:
		for at, terms := range a.terms(words, false) {
			for _, term := range terms {
				tokens = append(tokens, &analysis.Token{Term: []byte(term), Position: at + 1})
			}
		}
		return tokens
	case asBeginnings:
		for _, term := range a.beginnings(words) {
			tokens = append(tokens, &analysis.Token{Term: []byte(term), Position: 1})
		}
	case asAllBeginnings:
		for _, term := range a.allBeginnings(words) {
			tokens = append(tokens, &analysis.Token{Term: []byte(term), Position: 1})
		}
	}
	return tokens
}

// recent are words of the texts that were analyzed last, which bleve has analyzed twice in a row: for two fields. Nothing that is
// searched for comes here, so the time of a search does not depend on them.
type recent struct {
	mu  sync.Mutex
	all []analyzed
}

type analyzed struct {
	text  string
	words []word
}

const (
	maxRecent     = 8 // more than bleve analyzes at once
	maxRecentText = 16 << 10
)

// analyzed returns the words of a text: those of the analysis before, if there was one, which is forgotten then.
func (a analyzer) analyzed(text string) []word {
	if len(text) > maxRecentText {
		return a.words(normalize(text))
	}
	a.recent.mu.Lock()
	i := slices.IndexFunc(a.recent.all, func(one analyzed) bool { return one.text == text })
	if i >= 0 && a.as != asWords {
		words := a.recent.all[i].words
		a.recent.all = slices.Delete(a.recent.all, i, i+1)
		a.recent.mu.Unlock()
		return words
	}
	a.recent.mu.Unlock()
	words := a.words(normalize(text))
	if a.as == asWords && i < 0 {
		a.recent.mu.Lock()
		a.recent.all = append(a.recent.all, analyzed{text, words})
		a.recent.all = a.recent.all[max(0, len(a.recent.all)-maxRecent):]
		a.recent.mu.Unlock()
	}
	return words
}

// beginnings returns what an index has of words besides their stems, in which the beginnings of words are searched, too.
func (l *language) beginnings(words []word) (all []string) {
	seen := map[string]bool{}
	for _, w := range words {
		if w.begins() {
			for i, of := range []string{w.folded, w.normal} {
				if !slices.Contains(w.stems, of) && (i == 0 || of != w.folded) {
					all = append(all, of)
				}
			}
		}
		if w.joined != "" && !seen[w.joined] {
			seen[w.joined] = true
			all = append(all, w.joined)
		}
	}
	return all
}

// allBeginnings returns the beginnings of words, each of them; those of words that are joined once for a text.
func (l *language) allBeginnings(words []word) (all []string) {
	seen := map[string]bool{}
	for _, w := range words {
		var of []string
		if w.begins() {
			of = append(append(of, w.folded, w.normal), w.stems...)
		}
		if w.joined != "" && !seen[w.joined] {
			seen[w.joined] = true
			of = append(of, w.joined)
		}
		for i, text := range of {
			characters := 0
			for end := range text + "$" {
				beginning := text[:end]
				if characters++; characters > maxBeginning+1 {
					break
				}
				if characters > minPrefix && !slices.ContainsFunc(of[:i], func(before string) bool { return strings.HasPrefix(before, beginning) }) {
					all = append(all, beginning)
				}
			}
		}
	}
	return all
}

// begins reports whether a search for a beginning finds the word.
func (w word) begins() bool { return !w.stop && !w.alone && (w.part == whole || w.part == suffix) }
