package store

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"belfry/pkg/errs"
	"belfry/pkg/store/access"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
)

// listRequest is a list as it is asked for, once its text is read.
type listRequest struct {
	ListOptions
	call   Call
	asked  query.Request
	fields *policy.FieldReader // of the caller; nil: it reads all fields
}

// parse reads the text of a list.
func (l *lister) parse(ctx context.Context, o ListOptions) (*listRequest, error) {
	call := CallOf(ctx)
	r := &listRequest{ListOptions: o, call: call, fields: l.rules.Reader(ctx, call.caller())}
	if r.searches() {
		if err := l.checkSearch(o); err != nil {
			return nil, err
		}
	}
	var err error
	r.asked, err = query.Parse(o.Filter, o.Sort)
	return r, err
}

func (r *listRequest) searches() bool { return strings.TrimSpace(r.Words) != "" }

// plan makes the plan of a list. It may filter and sort by a field with a read rule only if the rule holds for the
// caller and every object. It does not use an index with another such field, because the index orders by that field.
func (l *lister) plan(ctx context.Context, r *listRequest) (*query.Plan, error) {
	if r.searches() {
		return l.planSearch(ctx, r)
	}
	indexes := l.indexes
	if r.call.Client {
		indexes = l.exposed
	}
	plan, err := r.asked.Plan(indexes)
	if err == nil && r.call.Client {
		err = refuseInternal(r.asked)
	}
	if err != nil || r.fields == nil {
		return plan, err
	}
	closed, err := l.rules.ClosedFields(ctx, r.fields)
	if err != nil {
		return nil, err
	}
	if err := l.refuseClosed(r, closed); err != nil {
		return nil, err
	}
	isClosed := func(i query.Index) bool {
		return slices.ContainsFunc(i.TopFields(), func(name string) bool { return closed[name] })
	}
	open := slices.DeleteFunc(slices.Clone(indexes), isClosed)
	if len(open) == len(indexes) {
		return plan, nil
	}
	return r.asked.Plan(open)
}

// SupportedSorts returns the sort orders, of those that are asked for, in which a list of a store with a filter can be
// planned for the caller. It reads nothing.
func SupportedSorts(ctx context.Context, s *Store, filter string, sorts []string) (supported []string) {
	r, err := s.lister.parse(ctx, ListOptions{Filter: filter})
	if err != nil {
		return nil
	}
	for _, sort := range sorts {
		sorted := *r
		if sorted.asked, err = r.asked.SortedBy(sort); err == nil {
			_, err = s.lister.plan(ctx, &sorted)
		}
		if err == nil {
			supported = append(supported, sort)
		}
	}
	return supported
}

// maxWords is the most bytes of the words of a search.
const maxWords = 1 << 10

// checkSearch refuses a search that can't be made.
func (l *lister) checkSearch(o ListOptions) error {
	switch {
	case len(l.search) == 0:
		return errs.New(errs.Invalid, "q: the text of this store's objects is not indexed; add search to the store")
	case len(o.Words) > maxWords:
		return errs.New(errs.Invalid, "q: longer than %d bytes", maxWords)
	case !utf8.ValidString(o.Words):
		return errs.New(errs.Invalid, "q: not valid UTF-8")
	case o.Sort != "":
		return errs.New(errs.Invalid,
			"sort: what q finds is in the order of how well it matches; leave out one of both")
	}
	return nil
}

// planSearch makes the plan of a list by words. The fields that the caller must not read of every object are
// not searched: the hits would reveal their values.
func (l *lister) planSearch(ctx context.Context, r *listRequest) (*query.Plan, error) {
	closed, err := l.rules.ClosedFields(ctx, r.fields)
	if err != nil {
		return nil, err
	}
	isClosed := func(field string) bool { return closed[topField(field)] }
	fields := slices.DeleteFunc(slices.Clone(l.search), isClosed)
	if len(fields) == 0 {
		const what = "q: the text of this store's objects can't be searched"
		return nil, l.rules.ErrClosed(r.call.caller(), what, topField(l.search[0]))
	}
	// A filter needs no index here, so it could name any field.
	for _, name := range r.asked.Fields() {
		if r.call.Client && l.rules.Hidden(name) {
			return nil, errs.New(errs.Invalid, "filter: objects can't be filtered by %q, which is in no reply", name)
		}
	}
	return r.asked.Search(r.Words, fields), l.refuseClosed(r, closed)
}

// refuseInternal refuses a list of a client by an internal field: who may filter by a field can find out its value.
func refuseInternal(asked query.Request) error {
	for _, name := range asked.Fields() {
		if access.IsInternal(name) {
			return errs.New(errs.Invalid, "filter, sort: lists can't be filtered or sorted by %q, which is in no reply",
				name)
		}
	}
	return nil
}

// refuseClosed refuses a list that is filtered or sorted by a closed field.
func (l *lister) refuseClosed(r *listRequest, closed map[string]bool) error {
	for _, name := range r.asked.Fields() {
		if closed[name] {
			return l.rules.ErrClosed(r.call.caller(), "lists can't be filtered or sorted", name)
		}
	}
	return nil
}

// topField returns the top-level field of one that may be a level below.
func topField(field string) string {
	top, _, _ := strings.Cut(field, ".")
	return top
}
