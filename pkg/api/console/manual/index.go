package manual

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"sync"
)

// The index has, for each word, the sections that have it, with a weight from 1 to 255 that the generator computed from
// the places of the word (title, heading, text), its frequency there and the length of the section. Sections are
// numbered in the order of the contents: those of the headings of the first page, then those of the second.
//
//	number of sections, number of words
//	for each word, sorted: length of what it shares with the word before, length of the rest, the rest,
//	    length of what follows in bytes, then for each section: difference to the section before, weight (a byte)
//
// Numbers are those of encoding/binary.AppendUvarint.

// index is words.gz, read. The lists of sections stay encoded.
type index struct {
	sections []place
	lists    map[string][]byte
	sorted   []string
}

// place is where a section is.
type place struct {
	page    *Page
	heading int // in Page.Headings
	part    *Part
}

var loadedIndex = sync.OnceValue(func() *index {
	ix := &index{}
	parts := Contents()
	for i := range parts {
		for _, page := range parts[i].Pages {
			for heading := range page.Headings {
				ix.sections = append(ix.sections, place{page, heading, &parts[i]})
			}
		}
	}
	text := read(WordsFile)
	number := func() int {
		n, size := binary.Uvarint(text)
		text = text[size:]
		return int(n)
	}
	if number() != len(ix.sections) {
		panic("manual: the index has other sections than the contents")
	}
	words := number()
	ix.lists, ix.sorted = make(map[string][]byte, words), make([]string, 0, words)
	word := ""
	for range words {
		shared, rest := number(), number()
		word, text = word[:shared]+string(text[:rest]), text[rest:]
		size := number()
		ix.lists[word], text = text[:size:size], text[size:]
		ix.sorted = append(ix.sorted, word)
	}
	return ix
})

// each calls f for each section of a list.
func each(list []byte, f func(section int, weight float64)) {
	for section := 0; len(list) > 0; {
		difference, size := binary.Uvarint(list)
		section += int(difference)
		f(section, float64(list[size])/math.MaxUint8)
		list = list[size+1:]
	}
}

// lookup returns the words of the index for a word of a query: itself, else those that begin with it.
func (ix *index) lookup(word string) []string {
	if _, ok := ix.lists[word]; ok {
		return []string{word}
	}
	const least, most = 3, 8 // letters of a beginning, and words that have it
	if len(word) < least {
		return nil
	}
	first, _ := slices.BinarySearch(ix.sorted, word)
	last := first
	for last < len(ix.sorted) && last-first < most && strings.HasPrefix(ix.sorted[last], word) {
		last++
	}
	return ix.sorted[first:last]
}

// scored is a section that a query has found.
type scored struct {
	section int
	score   float64
}

// score returns the sections that have the concepts of a query, the best first, and the words of the index that were
// looked up. Sections that have all concepts come before those that have one of them often.
func (ix *index) score(concepts []concept) (all []scored, used map[string]bool) {
	n := len(ix.sections)
	scores, shares, used := make([]float64, n), make([]float64, n), map[string]bool{}
	total := 0.0
	for _, c := range concepts {
		best, rarity := ix.weigh(c.typed, used)
		if rarity == 0 || !c.parts {
			means, other := ix.weigh(c.means, used)
			for section := range best {
				best[section] = max(best[section], synonymWeight*means[section])
			}
			rarity = max(rarity, other)
		}
		if rarity == 0 {
			continue
		}
		total += rarity
		for section, value := range best {
			scores[section] += value
			shares[section] += min(rarity, 4*value)
		}
	}
	for section, score := range scores {
		if score == 0 {
			continue
		}
		score *= 0.3 + 0.7*shares[section]/total
		if ix.sections[section].part.Internal {
			score *= internalWeight
		}
		all = append(all, scored{section, score})
	}
	slices.SortFunc(all, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.section, b.section))
	})
	return all, used
}

// weigh returns how well each section matches words, and the greatest rarity of these words: 0 if no section has any of
// them.
func (ix *index) weigh(words []string, used map[string]bool) (fit []float64, rarity float64) {
	n := len(ix.sections)
	fit = make([]float64, n)
	for _, word := range words {
		best := make([]float64, n)
		for _, known := range ix.lookup(word) {
			used[known] = true
			list := ix.lists[known]
			df := 0.0
			each(list, func(int, float64) { df++ })
			idf := math.Log1p((float64(n) - df + 0.5) / (df + 0.5))
			rarity = max(rarity, idf)
			each(list, func(section int, weight float64) { best[section] = max(best[section], idf*weight) })
		}
		for section, value := range best {
			fit[section] += value
		}
	}
	return fit, rarity
}

// synonymWeight is the weight of belfry's words for a term; the term itself has weight 1.
const synonymWeight = 0.7

// internalWeight is the weight of a section of an internal part.
const internalWeight = 0.3
