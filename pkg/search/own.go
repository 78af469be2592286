package search

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// own is a search that knows no other objects than those that are selected: neither what it finds and in which order,
// nor what that takes depends on others. A score is of one document alone, without how rare words are, or how long
// texts.
type own struct {
	places [][]place // of each part to find, those in each field
	not    [][]place // of each that what is found has not
	only   policy.Selection
	found  []ownHit
	scored int // documents
}

// ownHit is a document that is found.
type ownHit struct {
	of       *scorch.SegmentSnapshot
	document uint64
	score    float64
	uuid     string // "": not read
}

// checkEvery is after how many documents a search asks whether anybody waits for it.
const checkEvery = 1000

// searchOwn returns hits as search does, among the selected objects.
func (x *textIndex) searchOwn(ctx context.Context, parts []part, s store.TextSearch) ([]store.TextHit, bool, error) {
	o := own{}
	if s.Only != nil {
		o.only = *s.Only
	}
	for _, p := range parts {
		var in []place
		for i, field := range x.settings.Fields {
			if slices.Contains(s.Fields, field) {
				for _, one := range p.oneOf {
					in = append(in, one.placeIn(i))
				}
			}
		}
		if p.not {
			o.not = append(o.not, in)
		} else {
			o.places = append(o.places, in)
		}
	}
	hits, more, err := o.search(ctx, x, s)
	switch {
	case ctx.Err() != nil:
		return nil, false, errs.Wrap(ctx.Err(), errs.Unavailable,
			"q: the search took too long; look for words that fewer objects have")
	case err != nil && errs.KindOf(err) != errs.Invalid:
		return nil, false, errs.Wrap(err, errs.Unavailable, "the search index %s can't be read", x.folder)
	}
	return hits, more, err
}

func (o *own) search(ctx context.Context, x *textIndex, s store.TextSearch) ([]store.TextHit, bool, error) {
	reader, err := x.reader()
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = reader.Close() }() // reads
	snapshot, ok := reader.(*scorch.IndexSnapshot)
	if !ok {
		return nil, false, errs.New(errs.Internal, "the search index is a %T", reader)
	}
	for _, of := range snapshot.Segments() {
		if err := o.searchSegment(ctx, newSegment(of)); err != nil {
			return nil, false, err
		}
	}
	x.scored.Add(int64(o.scored))
	return o.page(ctx, s)
}

// searchSegment adds the hits of a segment.
func (o *own) searchSegment(ctx context.Context, s *segmentOf) error {
	set, err := s.selected(s.DocNumbersLive(), o.only)
	for _, in := range o.places {
		if err != nil || set.IsEmpty() {
			return err
		}
		set, err = havingAny(s, set, in)
	}
	if err != nil {
		return err
	}
	found, not := make([][]*reading, len(o.places)), make([][]*reading, len(o.not))
	for i, in := range o.places {
		if found[i], err = readAll(s, in); err != nil {
			return err
		}
	}
	for i, in := range o.not {
		if not[i], err = readAll(s, in); err != nil {
			return err
		}
	}
	for it := set.Iterator(); it.HasNext(); {
		document := uint64(it.Next())
		if o.scored++; ctx.Err() != nil { // one may be long
			return ctx.Err()
		}
		score, err := scoreOf(document, found, not)
		if err != nil {
			return err
		}
		if score > 0 {
			o.found = append(o.found, ownHit{of: s.SegmentSnapshot, document: document, score: score})
		}
	}
	return nil
}

// havingAny returns those of some documents that have a part in one of the fields.
func havingAny(s *segmentOf, of *roaring.Bitmap, in []place) (*roaring.Bitmap, error) {
	all := roaring.New()
	for _, p := range in {
		some, err := p.having(s, of)
		if err != nil {
			return nil, err
		}
		all.Or(some)
	}
	return all, nil
}

func readAll(s *segmentOf, in []place) (all []*reading, err error) {
	for _, p := range in {
		r, err := p.read(s)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// scoreOf returns how well a document matches; 0 if it lacks a searched part, or has an excluded one.
func scoreOf(document uint64, found, not [][]*reading) (total float64, err error) {
	for _, in := range not {
		if score, err := sumOf(document, in); err != nil || score > 0 {
			return 0, err
		}
	}
	for _, in := range found {
		score, err := sumOf(document, in)
		if err != nil || score == 0 {
			return 0, err
		}
		total += score
	}
	return total, nil
}

func sumOf(document uint64, in []*reading) (total float64, err error) {
	for _, r := range in {
		score, err := r.score(document)
		if err != nil {
			return 0, err
		}
		total += score
	}
	return total, nil
}

// page returns the hits after a position. Uuids are read of those that may be on it alone.
func (o *own) page(ctx context.Context, s store.TextSearch) (hits []store.TextHit, more bool, err error) {
	direction := 1
	if s.Backward {
		direction = -1
	}
	var from *ownHit
	if s.After != nil {
		score, uuid, err := splitPosition(s.After)
		if err != nil {
			return nil, false, err
		}
		from = &ownHit{score: score, uuid: uuid}
	}
	better := func(a, b ownHit) int { return -direction * cmp.Compare(a.score, b.score) }
	rest := o.found
	if from != nil {
		rest = slices.DeleteFunc(rest, func(h ownHit) bool { return better(h, *from) < 0 })
	}
	slices.SortFunc(rest, better)
	for len(rest) > 0 && len(hits) < s.Limit {
		n := 1 // that match as well
		for n < len(rest) && rest[n].score == rest[0].score {
			n++
		}
		alike := rest[:n]
		for i := range alike {
			uuid, err := alike[i].of.DocID(alike[i].document)
			if err != nil {
				return nil, false, err
			}
			if alike[i].uuid = string(uuid); i%checkEvery == 0 && ctx.Err() != nil {
				return nil, false, ctx.Err()
			}
		}
		rest = rest[n:]
		if from != nil && alike[0].score == from.score {
			alike = slices.DeleteFunc(alike,
				func(h ownHit) bool { return direction*cmp.Compare(h.uuid, from.uuid) <= 0 })
		}
		slices.SortFunc(alike, func(a, b ownHit) int { return direction * cmp.Compare(a.uuid, b.uuid) })
		for _, h := range alike {
			if len(hits) == s.Limit {
				return hits, true, nil
			}
			hits = append(hits, store.TextHit{UUID: h.uuid, Position: positionOf(h.score, h.uuid)})
		}
	}
	return hits, len(rest) > 0, nil
}

// positionOf is the place of a hit in the order of hits.
func positionOf(score float64, uuid string) []byte {
	return append(binary.BigEndian.AppendUint64(nil, math.Float64bits(score)), uuid...)
}

func splitPosition(position []byte) (score float64, uuid string, err error) {
	if len(position) <= 8 {
		return 0, "", errPosition()
	}
	score = math.Float64frombits(binary.BigEndian.Uint64(position))
	if math.IsNaN(score) || math.IsInf(score, 0) {
		return 0, "", errPosition()
	}
	return score, string(bytes.Clone(position[8:])), nil
}

func errPosition() error { return errs.New(errs.Invalid, "cursor: invalid; start again without it") }
