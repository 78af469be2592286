package search

import (
	"slices"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/custom"
	"github.com/blevesearch/bleve/v2/analysis/lang/ar"
	"github.com/blevesearch/bleve/v2/analysis/lang/cjk"
	"github.com/blevesearch/bleve/v2/analysis/lang/da"
	"github.com/blevesearch/bleve/v2/analysis/lang/de"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	"github.com/blevesearch/bleve/v2/analysis/lang/es"
	"github.com/blevesearch/bleve/v2/analysis/lang/fi"
	"github.com/blevesearch/bleve/v2/analysis/lang/fr"
	"github.com/blevesearch/bleve/v2/analysis/lang/hu"
	"github.com/blevesearch/bleve/v2/analysis/lang/it"
	"github.com/blevesearch/bleve/v2/analysis/lang/nl"
	"github.com/blevesearch/bleve/v2/analysis/lang/no"
	"github.com/blevesearch/bleve/v2/analysis/lang/pt"
	"github.com/blevesearch/bleve/v2/analysis/lang/ro"
	"github.com/blevesearch/bleve/v2/analysis/lang/ru"
	"github.com/blevesearch/bleve/v2/analysis/lang/sv"
	"github.com/blevesearch/bleve/v2/analysis/lang/tr"
	"github.com/blevesearch/bleve/v2/analysis/token/edgengram"
	"github.com/blevesearch/bleve/v2/analysis/token/lowercase"
	"github.com/blevesearch/bleve/v2/analysis/token/truncate"
	"github.com/blevesearch/bleve/v2/analysis/tokenizer/unicode"
	"github.com/blevesearch/bleve/v2/mapping"
	"github.com/blevesearch/bleve/v2/registry"

	"belfry/pkg/errs"
)

// Each language has an analyzer of its own in bleve, which finds the stems of words.
var languages = []string{
	ar.AnalyzerName, cjk.AnalyzerName, da.AnalyzerName, de.AnalyzerName, en.AnalyzerName, es.AnalyzerName, fi.AnalyzerName, fr.AnalyzerName, hu.AnalyzerName,
	it.AnalyzerName, nl.AnalyzerName, no.AnalyzerName, pt.AnalyzerName, ro.AnalyzerName, ru.AnalyzerName, sv.AnalyzerName, tr.AnalyzerName,
}

const (
	// plain is the analyzer without a language: words as they are, in lower case.
	plain = "belfry"

	// cut is the filter that cuts words.
	cut = "belfry-cut"

	// maxWord is the most characters of a word that count, as in Lucene. The time that some stemmers take grows with the square of it.
	maxWord = 255

	// begins makes the beginnings of words, of up to maxBeginning characters.
	begins       = "belfry-beginnings"
	maxBeginning = 24
)

// Words are cut before anything else is made of them, in texts and in what is searched for.
func init() { //nolint:gochecknoinits // the registry of bleve is global
	must(registry.RegisterTokenFilter(cut, func(map[string]any, *registry.Cache) (analysis.TokenFilter, error) {
		return truncate.NewTruncateTokenFilter(maxWord), nil
	}))
	must(registry.RegisterTokenFilter(begins, func(map[string]any, *registry.Cache) (analysis.TokenFilter, error) {
		return edgengram.NewEdgeNgramFilter(edgengram.FRONT, minPrefix, maxBeginning), nil
	}))
	for _, language := range languages {
		must(registry.RegisterAnalyzer(analyzerOf(language), derived(language, cut, func(filters []analysis.TokenFilter, first analysis.TokenFilter) []analysis.TokenFilter {
			return append([]analysis.TokenFilter{first}, filters...)
		})))
		must(registry.RegisterAnalyzer(beginningsOf(language), derived(analyzerOf(language), begins, func(filters []analysis.TokenFilter, last analysis.TokenFilter) []analysis.TokenFilter {
			return append(slices.Clone(filters), last)
		})))
	}
}

// derived returns what makes an analyzer from another one, whose filters are joined with one more.
func derived(from, filter string, join func(filters []analysis.TokenFilter, one analysis.TokenFilter) []analysis.TokenFilter) registry.AnalyzerConstructor {
	return func(_ map[string]any, cache *registry.Cache) (analysis.Analyzer, error) {
		found, err := cache.AnalyzerNamed(from)
		if err != nil {
			return nil, err
		}
		of, ok := found.(*analysis.DefaultAnalyzer)
		if !ok {
			return nil, errs.New(errs.Internal, "the analyzer %s is a %T", from, found)
		}
		one, err := cache.TokenFilterNamed(filter)
		if err != nil {
			return nil, err
		}
		return &analysis.DefaultAnalyzer{CharFilters: of.CharFilters, Tokenizer: of.Tokenizer, TokenFilters: join(of.TokenFilters, one)}, nil
	}
}

func must(err error) {
	if err != nil {
		panic(err) // two of one name
	}
}

// analyzerOf returns the name of the analyzer of a language.
func analyzerOf(language string) string {
	if language == "" {
		return plain
	}
	return plain + "-" + language
}

// beginningsOf returns the name of the analyzer of the beginnings of words in a language.
func beginningsOf(language string) string { return analyzerOf(language) + "-beginnings" }

// beginningOf returns what counts of the beginning of a word.
func beginningOf(text string) string {
	if runes := []rune(text); len(runes) > maxBeginning {
		return string(runes[:maxBeginning])
	}
	return text
}

// addPlain adds the analyzers without a language.
func addPlain(m *mapping.IndexMappingImpl) error {
	err := m.AddCustomAnalyzer(beginningsOf(""), map[string]any{"type": custom.Name, "tokenizer": unicode.Name, "token_filters": []string{cut, lowercase.Name, begins}})
	if err != nil {
		return err
	}
	return m.AddCustomAnalyzer(plain, map[string]any{"type": custom.Name, "tokenizer": unicode.Name, "token_filters": []string{cut, lowercase.Name}})
}
