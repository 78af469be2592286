package search

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/mapping"
	"github.com/blevesearch/bleve/v2/search"
	"github.com/blevesearch/bleve/v2/search/query"
	"github.com/blevesearch/bleve/v2/search/searcher"
	index "github.com/blevesearch/bleve_index_api"
)

// phraseQuery finds texts in which words follow each other. The one of bleve goes through every combination of the
// words that may be at each position: with two at each of thirty positions, as words with accents have, it would not
// end.
type phraseQuery struct {
	field string
	words [][]string // of each position those that may be there; nothing where a language leaves out a word
}

var _ query.Query = (*phraseQuery)(nil)

// Searcher implements query.Query.
func (q *phraseQuery) Searcher(ctx context.Context, i index.IndexReader, m mapping.IndexMapping,
	options search.SearcherOptions) (search.Searcher, error) {
	options.IncludeTermVectors = true
	all, alike := bleve.NewConjunctionQuery(), firstAlike(q.words)
	for i, words := range q.words {
		if len(words) > 0 && alike[i] == i {
			all.AddQuery(anyOf(words, q.field))
		}
	}
	found, err := all.Searcher(ctx, i, m, options)
	if err != nil {
		return nil, err
	}
	return searcher.NewFilteringSearcher(ctx, found, func(_ *search.SearchContext, d *search.DocumentMatch) bool {
		if ctx.Err() != nil {
			return false // bleve asks as well, after many documents
		}
		at := map[string][]where{}
		for _, l := range d.FieldTermLocations {
			at[l.Term] = append(at[l.Term], whereOf(l.Location.Pos, l.Location.ArrayPositions))
		}
		d.FieldTermLocations = d.FieldTermLocations[:0] // nobody else asks for them
		found := make([][]where, len(q.words))
		for i, words := range q.words {
			if alike[i] == i {
				for _, word := range words {
					found[i] = append(found[i], at[word]...)
				}
			}
		}
		return sequences(q.words, alike, found) > 0
	}), nil
}

// anyOf returns what bleve looks for if one of some words has to be in a field.
func anyOf(words []string, field string) query.Query {
	some := bleve.NewDisjunctionQuery()
	for _, word := range words {
		q := bleve.NewTermQuery(word)
		q.SetField(field)
		some.AddQuery(q)
	}
	return some
}

// where is a position in a field, which may have several texts.
type where struct{ text, at uint64 }

// whereOf returns the position of a word; array has the number of the text.
func whereOf(at uint64, array []uint64) where {
	w := where{at: at}
	if len(array) > 0 {
		w.text = array[0] // texts are in one array: see documentOf
	}
	return w
}

func (w where) compare(other where) int {
	return cmp.Or(cmp.Compare(w.text, other.text), cmp.Compare(w.at, other.at))
}

// firstAlike returns of each position the first one with the same words.
func firstAlike(words [][]string) []int {
	first, seen := make([]int, len(words)), map[string]int{}
	for i, some := range words {
		key := strings.Join(some, "\x00")
		if _, ok := seen[key]; !ok {
			seen[key] = i
		}
		first[i] = seen[key]
	}
	return first
}

// sequences returns how often words follow each other in one text. found has where those of each position are, of
// positions that are alike for the first one. The time grows with how many there are, and with the positions.
func sequences(words [][]string, alike []int, found [][]where) int {
	for i, some := range found {
		slices.SortFunc(some, where.compare)
		found[i] = slices.Compact(some) // a position may have two of the words
	}
	begins := slices.Clone(found[0])
	for i := 1; i < len(words) && len(begins) > 0; i++ {
		if len(words[i]) == 0 {
			continue
		}
		here, left := found[alike[i]], begins[:0]
		for _, b := range begins {
			follows := where{b.text, b.at + uint64(i)} //nolint:gosec // at most a KiB of words
			for len(here) > 0 && here[0].compare(follows) < 0 {
				here = here[1:]
			}
			if len(here) > 0 && here[0] == follows {
				left = append(left, b)
			}
		}
		begins = left
	}
	return len(begins)
}
