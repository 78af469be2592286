package search

import (
	"math"

	"github.com/RoaringBitmap/roaring/v2"
	segment "github.com/blevesearch/scorch_segment_api/v2"
)

// place is a part of a search in one field: words that follow each other, of each place those that may be there. A
// place may be empty, where a language leaves out a word.
type place struct {
	field  string
	words  [][]string
	length float64 // that a text of average length has
}

// Average lengths of texts, in words. They are fixed, because the real average of a store would reveal something about
// texts that the caller may not read.
const (
	averageWords      = 100
	averageBeginnings = 6 * averageWords
)

// placeIn returns a pattern in a field of the index.
func (p pattern) placeIn(field int) place {
	length := float64(averageWords)
	if p.beginnings {
		length = averageBeginnings
	}
	return place{p.field(field), p.words, length}
}

// follow reports whether words have to follow each other: that all are in a text is not enough.
func (p place) follow() bool { return len(p.words) > 1 }

// having returns those of some documents that have the words in the field, in any order.
func (p place) having(s *segmentOf, of *roaring.Bitmap) (*roaring.Bitmap, error) {
	for _, words := range p.words {
		if len(words) == 0 {
			continue
		}
		some := roaring.New()
		for _, word := range words {
			one, err := s.having(of, p.field, word)
			if err != nil {
				return nil, err
			}
			some.Or(one)
		}
		of = some
	}
	return of, nil
}

// reading reads how often documents have the words of a place, in the order of their numbers.
type reading struct {
	place
	alike []int         // of each position the first one with the same words
	lists [][]*postings // of the words of each such position
}

// postings are where a word is.
type postings struct {
	all segment.PostingsIterator
	at  segment.Posting // nil: before the first, or after the last
	end bool
}

func (p place) read(s *segmentOf) (*reading, error) {
	r := &reading{place: p, alike: firstAlike(p.words), lists: make([][]*postings, len(p.words))}
	for i, words := range p.words {
		if r.alike[i] != i {
			continue
		}
		for _, word := range words {
			list, err := s.postings(p.field, word)
			if err != nil {
				return nil, err
			}
			r.lists[i] = append(r.lists[i], &postings{all: list.Iterator(true, true, p.follow(), nil)})
		}
	}
	return r, nil
}

// of returns the occurrences of the word in a document, or nil.
func (p *postings) of(document uint64) (_ segment.Posting, err error) {
	if !p.end && (p.at == nil || p.at.Number() < document) {
		if p.at, err = p.all.Advance(document); err != nil {
			return nil, err
		}
		p.end = p.at == nil
	}
	if p.at == nil || p.at.Number() != document {
		return nil, nil
	}
	return p.at, nil
}

// score returns how well a document matches: by how often it has the words, and how long its text is. 0: it has them
// not.
func (r *reading) score(document uint64) (float64, error) {
	var times, length float64
	found := make([][]where, len(r.lists))
	for i, lists := range r.lists {
		for _, list := range lists {
			at, err := list.of(document)
			if err != nil {
				return 0, err
			}
			if at == nil {
				continue
			}
			length = math.Round(1 / (at.Norm() * at.Norm())) // which the norm is of
			times += float64(at.Frequency())
			for _, l := range at.Locations() {
				found[i] = append(found[i], whereOf(l.Pos(), l.ArrayPositions()))
			}
		}
	}
	if r.follow() {
		times = float64(sequences(r.words, r.alike, found))
	}
	if times == 0 {
		return 0, nil
	}
	const saturation, byLength = 1.2, 0.75
	return times * (saturation + 1) / (times + saturation*(1-byLength+byLength*length/r.length)), nil
}
