package sse

import (
	"slices"
	"sync"

	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store/query"
)

// objectFilters are the filters of all streams. Streams with the same filter share its results.
type objectFilters struct {
	mu  sync.Mutex
	all map[string]*objectFilter // by their texts
}

// objectFilter is a filter of objects.
type objectFilter struct {
	*query.Filter

	mu      sync.Mutex
	streams int
	results map[place]filterResult // of recent events; nil while one stream has the filter
	recent  []place                // those of results, the oldest first
}

// maxResults is how many results a filter keeps. Streams that are further apart evaluate it again.
const maxResults = 256

// filterResult is what a filter says about the object of an event, after the write and before.
type filterResult struct {
	after, before bool
	partial       bool // before is not known
}

// use returns the shared filter of a text for one more stream, which has to call release.
func (f *objectFilters) use(text string, parsed *query.Filter) *objectFilter {
	f.mu.Lock()
	defer f.mu.Unlock()
	shared := f.all[text]
	if shared == nil {
		shared = &objectFilter{Filter: parsed}
		if f.all == nil {
			f.all = map[string]*objectFilter{}
		}
		f.all[text] = shared
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.streams++; shared.streams == 2 {
		shared.results = map[place]filterResult{}
	}
	return shared
}

// release removes a stream from those that have a filter.
func (f *objectFilters) release(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	shared := f.all[text]
	shared.mu.Lock()
	defer shared.mu.Unlock()
	switch shared.streams--; shared.streams {
	case 0:
		delete(f.all, text)
	case 1:
		shared.results, shared.recent = nil, nil
	}
}

// of returns the result for an event with its object, at a place of the log. Its cost is charged to the stream that
// evaluates it.
func (f *objectFilter) of(e *entry, at place, budget *allowance) (filterResult, error) {
	if r, has := f.result(at); has {
		return r, nil
	}
	if err := budget.check(); err != nil {
		return filterResult{}, err
	}
	r, cost := f.evaluate(e)
	budget.charge(cost)
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, has := f.results[at]; f.results == nil || has {
		return r, nil
	}
	if f.recent = append(f.recent, at); len(f.recent) > maxResults {
		delete(f.results, f.recent[0])
		f.recent = f.recent[1:]
	}
	f.results[at] = r
	return r, nil
}

func (f *objectFilter) result(at place) (filterResult, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, has := f.results[at]
	return r, has
}

// evaluate evaluates the filter for the object of an event and, if that does not meet it, for the object before.
func (f *objectFilter) evaluate(e *entry) (r filterResult, cost uint64) {
	o := make(object.Object, len(f.Fields()))
	err := object.Each(e.object(), func(name string, value []byte) bool {
		if slices.Contains(f.Fields(), name) {
			o[name] = value
		}
		return true
	})
	cost = uint64((len(e.frame)+len(e.previous))/decodedBytes) + f.Cost(o)
	if r.after = err == nil && f.Match(o); r.after || e.name != event.StoreUpdated {
		return r, cost
	}
	if r.partial = e.partial; r.partial || e.revert(o, f.Fields()) != nil {
		return r, cost
	}
	r.before = f.Match(o)
	return r, cost + f.Cost(o)
}

// meets reports whether an object that was read meets the filter.
func (f *objectFilter) meets(o object.Object, budget *allowance) (bool, error) {
	if err := budget.check(); err != nil {
		return false, err
	}
	budget.charge(f.Cost(o))
	return f.Match(o), nil
}
