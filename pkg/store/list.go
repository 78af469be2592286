package store

import (
	"context"
	"fmt"
	"iter"

	"belfry/pkg/object"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/query"
)

// Limits of a list's page, in objects.
const (
	DefaultPage = 50
	MaxPage     = 500
)

// ListOptions select a page of objects.
type ListOptions struct {
	Filter string // see package query
	Words  string // the objects whose text has them, the best first, of those that meet the filter
	Sort   string
	Limit  int    // 0: DefaultPage
	Cursor string // Next of the page before
	Before string // Back of the page after, instead of Cursor
	Fields string // of the objects; see ParseProjection

	Expand  []Expansion // what the objects name is returned with them
	Count   CountMode
	Explain bool // the page has a Plan

	MaxBytes int // of the encoded page; 0: MaxPageBytes. An object that is larger is a page alone
}

// List is a page of objects. Before the last page it can be shorter than the limit,
// even empty, when the objects or the reading of them took too much: only Next says
// whether this is the last.
type List struct {
	Objects []Stored
	Next    string // the cursor of the next page; "" for none
	Back    string // Before of the page before; "" for none
	Count   *Count // nil: it was not asked for
	Plan    *Plan  // nil: it was not asked for
	Warning string // "": none; else which index to declare, see Options.Unindexed
}

// Encode writes {"<name>": [...], "cursor": "...", "before": "...", "count": {...}, "plan": {...}, "warning": "..."}, without what there is not.
func (l List) Encode(name string) []byte {
	size := len(`{"":[],"cursor":"","before":"","count":{"value":,"accuracy":"estimate"}}`) + len(name) + len(l.Next) + len(l.Back) + 20
	for _, o := range l.Objects {
		size += len(o.Body) + 1
	}
	body := append(make([]byte, 0, size), `{"`+name+`":[`...)
	for i, o := range l.Objects {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, o.Body...)
	}
	body = append(body, ']')
	for _, cursor := range [...]struct{ name, text string }{{"cursor", l.Next}, {"before", l.Back}} {
		if cursor.text != "" {
			body = appendField(body, cursor.name, object.AppendString(nil, cursor.text))
		}
	}
	if l.Count != nil {
		body = fmt.Appendf(body, `,"count":{"value":%d,"accuracy":%q}`, l.Count.Value, l.Count.Accuracy)
	}
	if l.Plan != nil {
		body = appendField(body, "plan", l.Plan.encode())
	}
	if l.Warning != "" {
		body = appendField(body, "warning", object.AppendString(nil, l.Warning))
	}
	return append(body, '}')
}

// listKeys computes the keys in every index that Open made, also in those that this configuration does not use: another
// one, of now or of later, uses them, and relies on them to have every object.
func (s *Store) listKeys(body []byte) []driver.Key { return query.Keys(s.indexed, body) }

// Linked iterates over the objects whose key refers to a target, reading pages of
// pageSize objects. The index may lag: read the object again where it matters. It
// ends after the first error.
func (s *Store) Linked(ctx context.Context, key, target string, pageSize int) iter.Seq2[Stored, error] {
	return toStoredSeq(driver.Matches(ctx, s.driver, driver.Query{
		Index: index(key), Equal: [][]byte{[]byte(target)}, Limit: pageSize,
	}))
}

// All iterates over all objects in the order of their uuids, reading pages of
// pageSize objects. It ends after the first error.
func (s *Store) All(ctx context.Context, pageSize int) iter.Seq2[Stored, error] {
	return toStoredSeq(driver.Records(ctx, s.driver, pageSize))
}

func toStoredSeq(records iter.Seq2[driver.Record, error]) iter.Seq2[Stored, error] {
	return func(yield func(Stored, error) bool) {
		for r, err := range records {
			if !yield(Stored{UUID: r.UUID, Revision: r.Revision, Body: r.Body}, err) {
				return
			}
		}
	}
}

// Scan returns a page of all objects in the order of their uuids.
func (s *Store) Scan(ctx context.Context, after []byte, limit int) ([]Stored, []byte, error) {
	page, err := s.driver.Scan(ctx, after, limit)
	return toStored(page.Records), page.Next, err
}

func toStored(records []driver.Record) []Stored {
	out := make([]Stored, len(records))
	for i, r := range records {
		out[i] = Stored{UUID: r.UUID, Revision: r.Revision, Body: r.Body}
	}
	return out
}
