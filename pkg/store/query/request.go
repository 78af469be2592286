package query

import "slices"

// Request is the request of a list: a filter and a sort order, before it is known which indexes support them.
type Request struct {
	filter       *node // nil: none
	conjunctions [][]condition
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
		q.conjunctions, err = q.filter.conjunctions(false)
	}
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
