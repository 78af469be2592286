package search

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/blevesearch/bleve/v2/analysis"
	_ "github.com/blevesearch/bleve/v2/analysis/analyzer/custom" // that without a language, as such an index names it
	"github.com/blevesearch/bleve/v2/analysis/token/edgengram"
	_ "github.com/blevesearch/bleve/v2/analysis/token/lowercase"
	"github.com/blevesearch/bleve/v2/analysis/token/truncate"
	_ "github.com/blevesearch/bleve/v2/analysis/tokenizer/unicode"
	"github.com/blevesearch/bleve/v2/registry"

	"belfry/pkg/errs"
)

// formerForm is that of the indexes that the version before this one made. They are searched, and follow the log, until
// one of this form is complete. Their words are those of bleve's analyzers, which such an index names, and which are
// here for nothing else.
const formerForm = 2

const (
	formerPlain  = "belfry"
	formerCut    = "belfry-cut"
	formerBegins = "belfry-beginnings"
)

func init() { //nolint:gochecknoinits // the registry of bleve is global
	must(registry.RegisterTokenFilter(formerCut, func(map[string]any, *registry.Cache) (analysis.TokenFilter, error) {
		return truncate.NewTruncateTokenFilter(maxWord), nil
	}))
	must(registry.RegisterTokenFilter(formerBegins,
		func(map[string]any, *registry.Cache) (analysis.TokenFilter, error) {
			return edgengram.NewEdgeNgramFilter(edgengram.FRONT, minPrefix, maxBeginning), nil
		}))
	for language := range specs {
		if language == "" {
			continue // the index has this analyzer itself
		}
		must(registry.RegisterAnalyzer(formerAnalyzer(language), derived(language, formerCut,
			func(filters []analysis.TokenFilter, first analysis.TokenFilter) []analysis.TokenFilter {
				return append([]analysis.TokenFilter{first}, filters...)
			})))
		must(registry.RegisterAnalyzer(formerAnalyzer(language)+"-beginnings", derived(formerAnalyzer(language),
			formerBegins, func(filters []analysis.TokenFilter, last analysis.TokenFilter) []analysis.TokenFilter {
				return append(slices.Clone(filters), last)
			})))
	}
}

// derived returns what makes an analyzer from another one, whose filters are joined with one more.
func derived(from, filter string,
	join func(filters []analysis.TokenFilter,
		one analysis.TokenFilter) []analysis.TokenFilter) registry.AnalyzerConstructor {
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
		return &analysis.DefaultAnalyzer{CharFilters: of.CharFilters, Tokenizer: of.Tokenizer,
			TokenFilters: join(of.TokenFilters, one)}, nil
	}
}

func formerAnalyzer(language string) string {
	if language == "" {
		return formerPlain
	}
	return formerPlain + "-" + language
}

// formerPart does what part does, in an index of the former form.
func (x *textIndex) formerPart(t term) ([]part, error) {
	tokens := x.bleve.Mapping().AnalyzerNamed(formerAnalyzer(x.settings.Language)).Analyze([]byte(t.text))
	if t.prefix {
		if utf8.RuneCountInString(t.text) < minPrefix {
			return nil, errShortBeginning(t.text)
		}
		words := x.bleve.Mapping().AnalyzerNamed(formerPlain).Analyze([]byte(t.text))
		switch {
		case len(words) == 1:
			beginning := strings.ToLower(string(words[0].Term))
			if x.settings.Rule != "" {
				return []part{{t.not,
					[]pattern{{beginnings: true, words: [][]string{{cutTo(beginning, maxBeginning)}}}}}}, nil
			}
			return []part{{t.not, []pattern{{beginning: beginning}}}}, nil
		case len(words) > 1 && x.settings.Language != "cjk": // whose words are not separated
			return nil, errSeveralWords(t.text)
		}
	}
	if len(tokens) == 0 {
		return nil, nil
	}
	first, last := tokens[0].Position, tokens[len(tokens)-1].Position
	words := make([][]string, last-first+1)
	for _, token := range tokens {
		words[token.Position-first] = append(words[token.Position-first], string(token.Term))
	}
	return partOf(t.not, words), nil
}
