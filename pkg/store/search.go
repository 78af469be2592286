package store

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
)

// Searcher finds the objects of stores by words in their text. What it finds may be late: an object may have changed
// since, or be gone.
type Searcher interface {
	// Search returns up to Limit hits, the best first, and whether there may be more. Errors: Invalid for words that are
	// none; Unavailable.
	Search(ctx context.Context, store string, s TextSearch) (hits []TextHit, more bool, err error)
}

// TextSearch selects hits.
type TextSearch struct {
	Words    string   `json:"words"`
	Fields   []string `json:"fields"`             // of those that the store has for searching
	After    []byte   `json:"after,omitempty"`    // the Position of the hit before the first; nil: from the start
	Backward bool     `json:"backward,omitempty"` // from the worst hit to the best
	Limit    int      `json:"limit"`

	// Not "": objects are found and ranked as if there were no others than those of Only, whose terms this Rule makes.
	Rule string            `json:"rule,omitempty"`
	Only *policy.Selection `json:"only,omitempty"`
}

// TextHit is an object whose text has the words.
type TextHit struct {
	UUID     string `json:"uuid"`
	Position []byte `json:"position"`
}

// maxWords is the most bytes of the words of a search.
const maxWords = 1 << 10

// parseSearch makes the plan of a list of what has words. The fields that the caller must not read of every object are not
// searched: what is found would tell what is in them.
func (s *Store) parseSearch(ctx context.Context, call Call, o ListOptions, reader *policy.FieldReader) (*query.Plan, error) {
	switch {
	case len(s.opts.Search) == 0:
		return nil, errs.New(errs.Invalid, "q: the text of this store's objects is not indexed; add search to the store")
	case len(o.Words) > maxWords:
		return nil, errs.New(errs.Invalid, "q: longer than %d bytes", maxWords)
	case !utf8.ValidString(o.Words):
		return nil, errs.New(errs.Invalid, "q: not valid UTF-8")
	case o.Sort != "":
		return nil, errs.New(errs.Invalid, "sort: what q finds is in the order of how well it matches; leave out one of both")
	}
	closed, err := s.closedFields(ctx, reader)
	if err != nil {
		return nil, err
	}
	fields := slices.DeleteFunc(slices.Clone(s.opts.Search), func(field string) bool { return closed[topField(field)] })
	if len(fields) == 0 {
		return nil, s.errClosed(call, "q: the text of this store's objects can't be searched", topField(s.opts.Search[0]))
	}
	plan, err := query.ParseSearch(o.Words, fields, o.Filter)
	if err != nil {
		return nil, err
	}
	// A filter needs no index here, so it could name any field.
	for _, name := range plan.Fields() {
		if call.Client && s.Hidden(name) {
			return nil, errs.New(errs.Invalid, "filter: objects can't be filtered by %q, which is in no reply", name)
		}
	}
	return plan, s.refuseClosed(call, plan, closed)
}

// maxSelected is how many values a search compares those of objects with, for a rule that names any number of them.
const maxSelected = 1000

// selected returns which objects a search goes through, where the rule depends on the object; nil: all of them.
func (l *listing) selected(ctx context.Context) (*policy.Selection, error) {
	switch {
	case !l.plan.Searches() || l.store.opts.SearchRule == nil:
		return nil, nil
	case !l.each:
		return &policy.Selection{Every: true}, nil
	}
	only, err := l.store.opts.SearchRule.Select(ctx, l.store.policyInput(l.call, nil, nil))
	if err == nil && only.Terms() > maxSelected {
		err = errs.New(errs.Invalid, "q: the rule of this store allows you objects with more than %d values: too many to search", maxSelected)
	}
	return &only, err
}

// SearchRule identifies the terms of SearchTerms: with another rule objects have others. "": they have none.
func (s *Store) SearchRule() string {
	if s.opts.SearchRule == nil {
		return ""
	}
	return s.opts.SearchRule.Key()
}

// SearchTerms returns by what terms of an object a search knows whether a caller may list it.
func (s *Store) SearchTerms(ctx context.Context, body []byte) ([]string, error) {
	if s.opts.SearchRule == nil {
		return nil, nil
	}
	o, err := object.Decode(body)
	if err != nil {
		return nil, err
	}
	return s.opts.SearchRule.Terms(ctx, o)
}

// topField returns the top-level field of one that may be a level below.
func topField(field string) string {
	top, _, _ := strings.Cut(field, ".")
	return top
}

// searchPage reads the next objects that have the words of a search.
func (r *reader) searchPage(ctx context.Context, s query.Search, after []byte, limit int) (driver.Page, error) {
	if len(r.hits) == 0 {
		if r.store.opts.Searcher == nil {
			return driver.Page{}, errs.New(errs.Unavailable, "q: nothing answers searches here")
		}
		var err error
		r.hits, r.moreHits, err = r.store.opts.Searcher.Search(ctx, r.store.opts.Name, TextSearch{
			Words: s.Words, Fields: s.Fields, After: after, Backward: s.Backward, Limit: limit, Rule: r.store.SearchRule(), Only: r.only,
		})
		if err != nil {
			return driver.Page{}, err
		}
	}
	chunk := r.hits[:min(r.found.next(), len(r.hits))]
	r.hits = r.hits[len(chunk):]
	uuids := make([]string, len(chunk))
	for i, hit := range chunk {
		uuids[i] = hit.UUID
	}
	records, err := driver.GetMany(ctx, r.store.driver, uuids)
	if err != nil {
		return driver.Page{}, err
	}
	var page driver.Page
	r.found.add(len(chunk), 0)
	for _, hit := range chunk {
		if i := slices.IndexFunc(records, func(r driver.Record) bool { return r.UUID == hit.UUID }); i >= 0 {
			page.Records, page.Positions = append(page.Records, records[i]), append(page.Positions, hit.Position)
			r.found.add(0, len(records[i].Body))
		}
	}
	if len(chunk) > 0 && (len(r.hits) > 0 || r.moreHits) {
		page.Next = chunk[len(chunk)-1].Position
	}
	return page, nil
}
