package search

import (
	"github.com/blevesearch/bleve/v2/analysis"
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
	"github.com/blevesearch/bleve/v2/analysis/token/lowercase"
	"github.com/blevesearch/bleve/v2/analysis/tokenizer/unicode"
	"github.com/blevesearch/bleve/v2/registry"
)

// Each language has an analyzer of its own in bleve, which finds the stems of words.
var _ = []string{
	ar.AnalyzerName, cjk.AnalyzerName, da.AnalyzerName, de.AnalyzerName, en.AnalyzerName, es.AnalyzerName, fi.AnalyzerName, fr.AnalyzerName, hu.AnalyzerName,
	it.AnalyzerName, nl.AnalyzerName, no.AnalyzerName, pt.AnalyzerName, ro.AnalyzerName, ru.AnalyzerName, sv.AnalyzerName, tr.AnalyzerName,
}

// plain is the analyzer without a language: words as they are, in lower case.
const plain = "belfry"

// analyzerOf returns the name of the analyzer of a language.
func analyzerOf(language string) string {
	if language == "" {
		return plain
	}
	return language
}

func init() {
	err := registry.RegisterAnalyzer(plain, func(_ map[string]any, cache *registry.Cache) (analysis.Analyzer, error) {
		tokenizer, err := cache.TokenizerNamed(unicode.Name)
		if err != nil {
			return nil, err
		}
		lower, err := cache.TokenFilterNamed(lowercase.Name)
		if err != nil {
			return nil, err
		}
		return &analysis.DefaultAnalyzer{Tokenizer: tokenizer, TokenFilters: []analysis.TokenFilter{lower}}, nil
	})
	if err != nil {
		panic(err) // the name is taken
	}
}
