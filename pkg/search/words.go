package search

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/search/query"
	"github.com/blevesearch/bleve/v2/search/searcher"
	index "github.com/blevesearch/bleve_index_api"

	"belfry/pkg/errs"
)

// Limits of what one search looks for.
const (
	maxTerms  = 32
	minPrefix = 2 // characters
)

// maxBeginnings is how many words of an index may begin as asked for, for all beginnings and fields of a search together: each is
// searched, with memory of its own.
const maxBeginnings = 1024

// limitBeginnings sets that for all indexes, before any is searched: for words that come between counting and searching.
var limitBeginnings = sync.OnceFunc(func() { searcher.DisjunctionMaxClauseCount = 2 * maxBeginnings })

// beginnings is what is left of a search for words that begin as asked for.
type beginnings struct {
	words index.IndexReader
	left  int
}

// count takes the words of a field that begin with a text. Invalid for more than are left.
func (b *beginnings) count(field, beginning string) error {
	words, err := b.words.FieldDictPrefix(field, []byte(beginning))
	if err != nil {
		return err
	}
	defer func() { _ = words.Close() }() // reads memory
	for {
		word, err := words.Next()
		if err != nil || word == nil {
			return err
		}
		if b.left--; b.left < 0 {
			return errTooManyBeginnings()
		}
	}
}

func errTooManyBeginnings() error {
	return errs.New(errs.Invalid, "q: more than %d words have such beginnings; give more of their characters, or fewer beginnings", maxBeginnings)
}

// term is a part of a search.
type term struct {
	text   string
	phrase bool // the words follow each other
	prefix bool // of a word
	not    bool // what is found has it not
}

// parseWords reads what is searched for: words, all of which an object has, "words in quotes", which follow each other, the
// beginning of a word as beg*, and -word or -"words" for what it has not.
func parseWords(text string) (all []term, err error) {
	words := 0
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimSpace(rest) {
		var t term
		if after, has := strings.CutPrefix(rest, "-"); has && after != "" && !strings.HasPrefix(after, "-") && !startsWithSpace(after) {
			t.not, rest = true, after
		}
		if after, has := strings.CutPrefix(rest, `"`); has {
			t.phrase = true
			t.text, rest, has = strings.Cut(after, `"`)
			if !has {
				return nil, errs.New(errs.Invalid, `q: the quotation mark at %.32q has no other that ends it`, t.text)
			}
		} else {
			end := strings.IndexFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || r == '"' })
			if end < 0 {
				end = len(rest)
			}
			t.text, rest = rest[:end], rest[end:]
			t.text, t.prefix = strings.CutSuffix(t.text, "*")
		}
		if t.prefix && utf8.RuneCountInString(t.text) < minPrefix {
			return nil, errs.New(errs.Invalid, "q: %.32q* is the beginning of too many words; give at least %d characters", t.text, minPrefix)
		}
		if words++; words > maxTerms {
			return nil, errs.New(errs.Invalid, "q: has more than %d words", maxTerms)
		}
		if !slices.Contains(all, t) { // else it would be searched twice
			all = append(all, t)
		}
	}
	return all, nil
}

func startsWithSpace(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return unicode.IsSpace(r)
}

// part is a part of a search with the words that an index has for it.
type part struct {
	term
	tokens analysis.TokenStream // of the text; the beginning of a word as it is, in lower case
}

// begins reports whether the part is the beginning of a word.
func (p part) begins() bool { return p.prefix && len(p.tokens) == 1 }

// parts reads what is searched for. Words that the language leaves out, such as "the", are ignored; without one to find
// there are no parts.
func (x *textIndex) parts(text string) ([]part, error) {
	terms, err := parseWords(text)
	if err != nil {
		return nil, err
	}
	analyzer, asWritten := x.bleve.Mapping().AnalyzerNamed(analyzerOf(x.settings.Language)), x.bleve.Mapping().AnalyzerNamed(plain)
	var all []part
	found := false
	for _, t := range terms {
		tokens := analyzer.Analyze([]byte(t.text))
		if t.prefix {
			// A language leaves out no word that only begins like "the"; and no word begins with a parenthesis.
			words := asWritten.Analyze([]byte(t.text))
			switch {
			case len(words) == 1:
				t.text, tokens = string(words[0].Term), words
			case len(words) > 1 && x.settings.Language != "cjk": // whose words are not separated
				return nil, errs.New(errs.Invalid, "q: %.32q* is several words; give the beginning of one", t.text)
			}
		}
		if len(tokens) > 0 {
			all = append(all, part{t, tokens})
			found = found || !t.not
		}
	}
	switch {
	case found:
		return all, nil
	case len(terms) == 0 || terms[0].not:
		return nil, errs.New(errs.Invalid, "q: has no word to find")
	default:
		return nil, nil
	}
}

// queryOf returns what bleve looks for.
func (x *textIndex) queryOf(parts []part, fields []string) (query.Query, error) {
	if len(parts) == 0 {
		return bleve.NewMatchNoneQuery(), nil
	}
	reader, err := x.reader()
	if err != nil {
		return nil, err
	}
	defer func() { _ = reader.Close() }() // reads
	budget := beginnings{reader, maxBeginnings}
	all := bleve.NewBooleanQuery()
	for _, p := range parts {
		some := bleve.NewDisjunctionQuery()
		for i, field := range x.settings.Fields {
			if !slices.Contains(fields, field) {
				continue
			}
			if p.begins() {
				if err := budget.count(fieldName(i), strings.ToLower(p.text)); err != nil {
					return nil, err
				}
			}
			some.AddQuery(p.in(fieldName(i)))
		}
		if p.not {
			all.AddMustNot(some)
		} else {
			all.AddMust(some)
		}
	}
	return all, nil
}

// in returns what bleve looks for in a field.
func (p part) in(field string) query.FieldableQuery {
	var q query.FieldableQuery
	switch {
	case p.begins():
		q = bleve.NewPrefixQuery(strings.ToLower(p.text))
	case p.phrase || len(p.tokens) > 1: // one word in the text can be several in the index, such as one with a hyphen
		q = bleve.NewMatchPhraseQuery(p.text)
	default:
		q = bleve.NewMatchQuery(p.text)
	}
	q.SetField(field)
	return q
}
