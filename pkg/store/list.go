package store

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"belfry/pkg/object"
	"belfry/pkg/store/access"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
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
	MaxKeys  int // that are compared at most where indexes are intersected, and that are counted; 0: the most
	MaxReads int // objects that are read at most, for the page and for the count; 0: the most
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

// Encode is AppendEncoded to nothing.
func (l List) Encode(name string) []byte { return l.AppendEncoded(nil, name) }

// AppendEncoded appends {"<name>": [...], "cursor": "...", "before": "...", "count": {...}, "plan": {...},
// "warning": "..."}, without what there is not.
func (l List) AppendEncoded(body []byte, name string) []byte {
	const frame = `{"":[],"cursor":"","before":"","count":{"value":,"accuracy":"estimate"}}`
	size := len(frame) + len(name) + len(l.Next) + len(l.Back) + 20
	for _, o := range l.Objects {
		size += len(o.Body) + 1
	}
	body = append(slices.Grow(body, size), `{"`+name+`":[`...)
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

// lister serves lists.
type lister struct {
	*core
	reader     *reader
	state      *Indexes
	indexes    []query.Index    // of lists of belfry itself
	exposed    []query.Index    // of lists of clients: none has an internal field
	unindexed  bool             // for development: see Options.Unindexed
	search     []string         // fields whose text lists search by words
	searcher   Searcher         // of these; nil: none
	searchRule *policy.Selector // of the rule of lists; nil: a search goes through all objects
	sealer     Sealer           // of cursors; nil: they can be read
}

func newLister(o *Options, c *core, r *reader, state *Indexes) *lister {
	l := &lister{
		core: c, reader: r, state: state, unindexed: o.Unindexed,
		search: o.Search, searcher: o.Searcher, searchRule: o.SearchRule, sealer: o.Sealer,
	}
	l.setIndexes(o.Indexes)
	return l
}

// setIndexes sets the indexes of lists.
func (l *lister) setIndexes(indexes []query.Index) {
	isInternal := func(i query.Index) bool { return slices.ContainsFunc(i.TopFields(), access.IsInternal) }
	l.indexes, l.exposed = indexes, slices.DeleteFunc(slices.Clone(indexes), isInternal)
}

// matches iterates over the objects that a query finds.
func (l *lister) matches(ctx context.Context, q driver.Query) iter.Seq2[Stored, error] {
	return toStoredSeq(driver.Matches(ctx, l.driver, q))
}

func toStoredSeq(records iter.Seq2[driver.Record, error]) iter.Seq2[Stored, error] {
	return func(yield func(Stored, error) bool) {
		for r, err := range records {
			if !yield(toStored(r), err) {
				return
			}
		}
	}
}

// scanPage: see Store.Scan.
func (l *lister) scanPage(ctx context.Context, after []byte, limit int) ([]Stored, []byte, error) {
	page, err := l.driver.Scan(ctx, after, limit)
	out := make([]Stored, len(page.Records))
	for i, r := range page.Records {
		out[i] = toStored(r)
	}
	return out, page.Next, err
}
