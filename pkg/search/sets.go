package search

import (
	"github.com/RoaringBitmap/roaring/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	segment "github.com/blevesearch/scorch_segment_api/v2"

	"belfry/pkg/errs"
	"belfry/pkg/store/policy"
)

// segmentOf is a segment of an index, whose documents have numbers. A result in a segment is a set of these numbers:
// sets are intersected without iterating over the numbers that only one of them has.
type segmentOf struct {
	*scorch.SegmentSnapshot
	words map[string]segment.TermDictionary // by field
}

func newSegment(s *scorch.SegmentSnapshot) *segmentOf {
	return &segmentOf{s, map[string]segment.TermDictionary{}}
}

// postings returns where a word is in a field.
func (s *segmentOf) postings(field, word string) (segment.PostingsList, error) {
	words, ok := s.words[field]
	if !ok {
		var err error
		if words, err = s.Segment().Dictionary(field); err != nil {
			return nil, err
		}
		s.words[field] = words
	}
	return words.PostingsList([]byte(word), nil, nil)
}

// having returns those of some documents that have a word in a field.
func (s *segmentOf) having(of *roaring.Bitmap, field, word string) (*roaring.Bitmap, error) {
	list, err := s.postings(field, word)
	if err != nil {
		return nil, err
	}
	all, ok := list.Iterator(false, false, false, nil).(segment.OptimizablePostingsIterator)
	if !ok {
		return nil, errs.New(errs.Internal, "the segments of the search index have no sets")
	}
	if n, one := all.DocNum1Hit(); one {
		if number := uint32(n); of.Contains(number) { //nolint:gosec // as a segment has it
			return roaring.BitmapOf(number), nil
		}
		return roaring.New(), nil
	}
	if all.ActualBitmap() == nil {
		return roaring.New(), nil
	}
	return roaring.And(of, all.ActualBitmap()), nil
}

// selected returns those of some documents that are selected by their terms.
func (s *segmentOf) selected(of *roaring.Bitmap, by policy.Selection) (*roaring.Bitmap, error) {
	switch {
	case by.Every:
		return of, nil
	case by.Term != "":
		return s.having(of, termsField, by.Term)
	case by.Not != nil:
		others, err := s.selected(of, *by.Not)
		if err != nil {
			return nil, err
		}
		return roaring.AndNot(of, others), nil
	case len(by.All) > 0:
		for _, one := range by.All {
			var err error
			if of, err = s.selected(of, one); err != nil {
				return nil, err
			}
		}
		return of, nil
	}
	var all []*roaring.Bitmap
	for _, one := range by.Any {
		some, err := s.selected(of, one)
		if err != nil {
			return nil, err
		}
		all = append(all, some)
	}
	return roaring.FastOr(all...), nil
}
