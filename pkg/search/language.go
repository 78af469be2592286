package search

import (
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
	"github.com/blevesearch/bleve/v2/analysis/token/lowercase"
	"github.com/blevesearch/bleve/v2/analysis/tokenizer/unicode"
	"github.com/blevesearch/bleve/v2/mapping"
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

// addPlain adds the analyzer without a language.
func addPlain(m *mapping.IndexMappingImpl) error {
	return m.AddCustomAnalyzer(plain, map[string]any{"type": custom.Name, "tokenizer": unicode.Name, "token_filters": []string{lowercase.Name}})
}
