package query

import "strings"

// Search is the words that a list finds objects by.
type Search struct {
	Words    string
	Fields   []string // whose text has the words, all in one of them or some in each
	Backward bool     // from the worst hit to the best
}

// ParseSearch makes a plan for the objects whose text has words, and that meet a filter, which needs no index. They come in
// the order of how well they match.
func ParseSearch(words string, fields []string, filter string) (*Plan, error) {
	root, err := parseFilter(filter)
	if err != nil {
		return nil, err
	}
	p := &Plan{filter: root, conjunctions: [][]condition{nil}, sifts: true}
	if root != nil {
		if p.conjunctions, err = root.conjunctions(false); err != nil {
			return nil, err
		}
	}
	p.unheld = p.conjunctions
	p.reads = []Read{{search: &Search{Words: words, Fields: fields}}}
	p.fingerprint = fingerprintOf(filter, "", append([]string{"search", words}, fields...))
	return p, nil
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
