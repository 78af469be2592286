package search

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/bleve/v2"
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

// maxBeginnings is how many words of an index may begin as asked for, for all beginnings and fields of a search
// together: each is searched, with memory of its own.
const maxBeginnings = 1024

// limitBeginnings sets that for all indexes, before any is searched: for words that come between counting and
// searching.
var limitBeginnings = sync.OnceFunc(func() { searcher.DisjunctionMaxClauseCount = 2 * maxBeginnings })

// beginnings limits the number of words that the beginnings of a search match.
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
	return errs.New(errs.Invalid,
		"q: more than %d words have such beginnings; give more of their characters, or fewer beginnings", maxBeginnings)
}

// term is a part of a search.
type term struct {
	text   string
	phrase bool // the words follow each other
	prefix bool // of a word
	not    bool // what is found has it not
}

// parseWords parses a search: words, all of which an object has, "words in quotes", which follow each other, the
// beginning of a word as beg*, and -word or -"words" to exclude objects.
func parseWords(text string) (all []term, err error) {
	words := 0
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimSpace(rest) {
		var t term
		if after, has := strings.CutPrefix(rest, "-"); has && after != "" && !strings.HasPrefix(after, "-") &&
			!startsWithSpace(after) {
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
		if words++; words > maxTerms {
			return nil, errs.New(errs.Invalid, "q: has more than %d words", maxTerms)
		}
		if !slices.Contains(all, t) { // else it would be searched twice
			all = append(all, t)
		}
	}
	return all, nil
}

// quoted returns a searched text with ordinary quotation marks, as keyboards insert others by themselves. It returns a
// text with an odd number of them unchanged.
func quoted(text string) string {
	n := 0
	ordinary := strings.Map(func(r rune) rune {
		if isQuote(r) {
			n++
			return '"'
		}
		return r
	}, text)
	if n%2 == 1 {
		return text
	}
	return ordinary
}

func isQuote(r rune) bool { return strings.ContainsRune("“”„‟«»", r) }

func startsWithSpace(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return unicode.IsSpace(r)
}

func errShortBeginning(text string) error {
	return errs.New(errs.Invalid, "q: %.32q* is the beginning of too many words; give at least %d characters", text,
		minPrefix)
}

func errSeveralWords(text string) error {
	return errs.New(errs.Invalid, "q: %.32q* is several words; give the beginning of one", text)
}

// part is a part of a search, with its patterns in an index.
type part struct {
	not   bool
	oneOf []pattern // one of these has to be in a field
}

// pattern is what is in the text of a field.
type pattern struct {
	beginnings bool // it is in the field with the beginnings of words
	beginning  string
	// if there is no beginning: words that follow each other, of each position those that may be there
	words [][]string
}

// parts reads the parts of a search. Words that the language leaves out, such as "the", are ignored. Invalid without a
// word to find.
func (x *textIndex) parts(text string) ([]part, error) {
	partOf := x.part
	if x.form == formerForm {
		partOf = x.formerPart
	} else {
		text = quoted(normalize(text))
	}
	terms, err := parseWords(text)
	if err != nil {
		return nil, err
	}
	var all []part
	found := false
	for _, t := range terms {
		some, err := partOf(t)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		found = found || len(some) > 0 && !t.not
	}
	if !found {
		return nil, errs.New(errs.Invalid, "q: has no word to find")
	}
	return all, nil
}

// part returns the patterns of an index for a part of a search: nil for a part without words.
func (x *textIndex) part(t term) ([]part, error) {
	l, err := languageOf(x.settings.Language)
	if err != nil {
		return nil, err
	}
	words := l.words(t.text, nil)
	// The characters of such a script are no beginning of more.
	if len(words) == 0 || !t.prefix || words[len(words)-1].alone {
		return partOf(t.not, phrase(l.terms(words, true))), nil
	}
	first := len(words) - 1 // of those that are joined
	for first > 0 && words[first-1].next != "" {
		first--
	}
	if first > 0 && t.not {
		return nil, errSeveralWords(t.text)
	}
	before := partOf(false, phrase(l.terms(words[:first], true)))
	oneOf := x.begin(l, words[first:])
	if oneOf == nil {
		return nil, errShortBeginning(t.text)
	}
	return append(before, part{t.not, oneOf}), nil
}

func partOf(not bool, words [][]string) []part {
	if len(words) == 0 {
		return nil
	}
	return []part{{not, []pattern{{words: words}}}}
}

// phrase returns the terms of positions without the empty positions at both ends.
func phrase(positions [][]string) [][]string {
	for len(positions) > 0 && len(positions[0]) == 0 {
		positions = positions[1:]
	}
	for len(positions) > 0 && len(positions[len(positions)-1]) == 0 {
		positions = positions[:len(positions)-1]
	}
	return positions
}

// begin returns patterns for words that begin like one word, or like several joined words; nil for too few characters.
// A text that the whole word finds is also found by the word as a beginning: by its stem, although no word begins like
// it.
func (x *textIndex) begin(l *language, words []word) (oneOf []pattern) {
	var all []string
	for i, w := range words {
		beginnings := []string{w.joined}
		if i == len(words)-1 {
			beginnings = []string{w.folded, w.normal}
			if utf8.RuneCountInString(w.folded) < minPrefix {
				beginnings = []string{w.folded + w.next} // as O', of what it is joined to
			}
		}
		for _, beginning := range beginnings {
			if x.settings.Rule != "" {
				beginning = cutTo(beginning, maxBeginning)
			}
			if utf8.RuneCountInString(beginning) >= minPrefix && !slices.Contains(all, beginning) {
				all = append(all, beginning)
			}
		}
		if w.part != article {
			break
		}
	}
	switch {
	case len(all) == 0:
		return nil
	case x.settings.Rule != "":
		oneOf = []pattern{{beginnings: true, words: [][]string{all}}}
	default:
		for _, beginning := range all {
			oneOf = append(oneOf, pattern{beginning: beginning}, pattern{beginnings: true, beginning: beginning})
		}
	}
	if stems := phrase(l.terms(words, true)); len(stems) > 0 {
		oneOf = append(oneOf, pattern{words: stems})
	}
	return oneOf
}

// queryOf returns what bleve looks for.
func (x *textIndex) queryOf(parts []part, fields []string) (query.Query, error) {
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
			for _, one := range p.oneOf {
				if one.beginning != "" {
					if err := budget.count(one.field(i), one.beginning); err != nil {
						return nil, err
					}
				}
				some.AddQuery(one.in(one.field(i)))
			}
		}
		if p.not {
			all.AddMustNot(some)
		} else {
			all.AddMust(some)
		}
	}
	return all, nil
}

func (p pattern) field(i int) string {
	if p.beginnings {
		return beginningsName(i)
	}
	return fieldName(i)
}

// in returns what bleve looks for in a field.
func (p pattern) in(field string) query.Query {
	switch {
	case p.beginning != "":
		q := bleve.NewPrefixQuery(p.beginning)
		q.SetField(field)
		return q
	case len(p.words) > 1:
		return &phraseQuery{field, p.words}
	}
	return anyOf(p.words[0], field)
}
