package store

import (
	"context"
	"slices"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
)

// Searcher finds the objects of stores by words in their text. Its index lags: an object that it finds may have changed
// since, or be deleted.
type Searcher interface {
	// Search returns up to Limit hits, the best first, and whether there may be more. Errors: Invalid for a text
	// without words; Unavailable.
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

// ruleKey identifies the terms of searchTerms: with another rule objects have others. "": they have no terms.
func (l *lister) ruleKey() string {
	if l.searchRule == nil {
		return ""
	}
	return l.searchRule.Key()
}

// searchTerms: see Store.SearchTerms.
func (l *lister) searchTerms(ctx context.Context, body []byte) ([]string, error) {
	if l.searchRule == nil {
		return nil, nil
	}
	o, err := object.Decode(body)
	if err != nil {
		return nil, err
	}
	return l.searchRule.Terms(ctx, o)
}

// hits are the results of a search.
type hits struct {
	selection *policy.Selection // what the search goes through; nil: all objects
	unread    []TextHit
	more      bool   // there may be others
	read      chunks // of those whose objects were read
}

// readPage reads the next objects that have the words of a search.
func (h *hits) readPage(
	ctx context.Context, of *lister, s query.Search, after []byte, limit int,
) (page driver.Page, err error) {
	if len(h.unread) == 0 {
		if of.searcher == nil {
			return page, errs.New(errs.Unavailable, "q: nothing answers searches here")
		}
		h.unread, h.more, err = of.searcher.Search(ctx, of.name, TextSearch{
			Words: s.Words, Fields: s.Fields, After: after, Backward: s.Backward, Limit: limit,
			Rule: of.ruleKey(), Only: h.selection,
		})
		if err != nil {
			return page, err
		}
	}
	chunk := h.unread[:min(h.read.next(), len(h.unread))]
	h.unread = h.unread[len(chunk):]
	uuids := make([]string, len(chunk))
	for i, hit := range chunk {
		uuids[i] = hit.UUID
	}
	records, err := driver.GetMany(ctx, of.driver, uuids)
	if err != nil {
		return page, err
	}
	h.read.add(len(chunk), 0)
	for _, hit := range chunk {
		if i := slices.IndexFunc(records, func(r driver.Record) bool { return r.UUID == hit.UUID }); i >= 0 {
			page.Records, page.Positions = append(page.Records, records[i]), append(page.Positions, hit.Position)
			h.read.add(0, len(records[i].Body))
		}
	}
	if len(chunk) > 0 && (len(h.unread) > 0 || h.more) {
		page.Next = chunk[len(chunk)-1].Position
	}
	return page, nil
}
