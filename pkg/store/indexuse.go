package store

import (
	"context"

	"belfry/pkg/store/query"
)

// IndexUse describes an index of a store.
type IndexUse struct {
	Name     string
	Fields   []string // of an index of lists; nil: belfry itself reads the index
	Key      string   // of an index by what a field names; "" for others
	Building bool     // it is not complete, as far as is known: others may have built it for some seconds

	// Lists is how many pages of lists this process has read by it since it opened the store with its indexes.
	Lists int64
}

// IndexUses returns all indexes of a store, sorted by name, also those that another configuration has which this
// process serves until a reload is complete.
func IndexUses(ctx context.Context, s *Store) ([]IndexUse, error) {
	state := s.opened.state
	known, err := state.recent(ctx)
	if err != nil {
		return nil, err
	}
	var all []IndexUse
	for _, name := range state.names {
		use := IndexUse{Name: name, Building: known.has(name), Lists: state.used[name].Load()}
		for _, i := range s.indexing.lists {
			if i.Name == name {
				use.Fields = i.Fields
			}
		}
		for _, key := range s.indexing.mapped {
			if mapIndex(key) == name {
				use.Key = key
			}
		}
		all = append(all, use)
	}
	return all, nil
}

// countUse counts a page of a list for the indexes that it reads.
func (x *Indexes) countUse(plan *query.Plan) {
	before := ""
	for _, read := range plan.Reads() {
		if name := read.Index(); name != before { // ranges of an index follow each other
			before = name
			x.count(name)
		}
		for _, condition := range read.Conditions() {
			x.count(condition.Index)
		}
	}
}

func (x *Indexes) count(index string) {
	if n := x.used[index]; n != nil {
		n.Add(1)
	}
}
