package query

import (
	"slices"
	"strings"
)

// Request is the request of a list: a filter and a sort order, before it is known which indexes support them.
type Request struct {
	filter       *node // nil: none
	conjunctions [][]condition
	withDomains  []conjunction // conjunctions
	sort         order

	filterText, sortText string
}

// Parse reads a filter and a sort order ("year", "-year", "author,year"), each of which may be empty. When both are, or
// the order is "uuid", objects come in the order of their uuids. Errors are errs.Invalid and name the unsupported part.
func Parse(filter, sort string) (Request, error) {
	q := Request{conjunctions: [][]condition{nil}, filterText: filter, sortText: sort}
	var err error
	if q.filter, err = parseFilter(filter); err != nil {
		return Request{}, err
	}
	if q.sort, err = parseSort(sort); err != nil {
		return Request{}, err
	}
	if q.filter != nil {
		if q.conjunctions, err = q.filter.conjunctions(false); err != nil {
			return Request{}, err
		}
	}
	q.withDomains = newConjunctions(q.conjunctions)
	return q, nil
}

// SortedBy returns the request with another sort order. The filter is not read again.
func (q Request) SortedBy(sort string) (Request, error) {
	var err error
	q.sortText = sort
	q.sort, err = parseSort(sort)
	return q, err
}

// Fields returns the top-level fields by which the list is filtered and sorted.
func (q Request) Fields() []string {
	var names []string
	add := func(f field) {
		if !slices.Contains(names, f.top) {
			names = append(names, f.top)
		}
	}
	for _, c := range q.conjunctions {
		for _, one := range c {
			add(one.field)
		}
	}
	for _, f := range q.sort {
		add(f)
	}
	return names
}

// Search is the words that a list finds objects by.
type Search struct {
	Words    string
	Fields   []string // whose text has the words, all in one of them or some in each
	Backward bool     // from the worst hit to the best
}

// Search makes a plan for the objects whose text has words, and that meet the filter, which needs no index. They come
// in the order of how well they match, so the request has no sort order.
func (q Request) Search(words string, fields []string) *Plan {
	p := &Plan{filter: q.filter, conjunctions: q.conjunctions, residual: q.conjunctions, readsUnmatched: true}
	p.reads = []Read{{search: &Search{Words: words, Fields: fields}}}
	p.fingerprint = fingerprintOf(q.filterText, "", append([]string{"search", words}, fields...))
	return p
}

// Search returns the words by which the read finds objects, if it does.
func (r Read) Search() (s Search, is bool) {
	if r.search == nil {
		return Search{}, false
	}
	s = *r.search
	s.Backward = r.descending
	return s, true
}

// Searches reports whether the list finds objects by words.
func (p *Plan) Searches() bool { return len(p.reads) == 1 && p.reads[0].search != nil }

// explain writes a search for people.
func (s Search) explain() ExplainedRead {
	return ExplainedRead{Words: s.Words, In: strings.Join(s.Fields, ", "), Backward: s.Backward}
}
