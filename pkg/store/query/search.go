package query

import "strings"

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
