package store

import (
	"context"
	"errors"
	"iter"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/object"
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
	Sort   string
	Limit  int    // 0: DefaultPage
	Cursor string // Next of the page before

	MaxBytes int // of the encoded page; 0: MaxPageBytes. An object that is larger is a page alone
}

// List is a page of objects. It can be shorter than the limit, even empty,
// before the last page: only Next says whether this is the last.
type List struct {
	Objects []Stored
	Next    string
}

// Encode writes {"<name>": [...], "cursor": "..."}, without a cursor when the page
// is the last.
func (l List) Encode(name string) []byte {
	size := len(`{"":[],"cursor":}`) + len(name) + len(l.Next) + 2
	for _, o := range l.Objects {
		size += len(o.Body) + 1
	}
	body := append(make([]byte, 0, size), `{"`+name+`":[`...)
	for i, o := range l.Objects {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, o.Body...)
	}
	body = append(body, ']')
	if l.Next != "" {
		body = append(body, `,"cursor":`...)
		body = object.AppendString(body, l.Next)
	}
	return append(body, '}')
}

// List returns a page of the objects that match, for a client without those that
// the policy denies and without the fields it must not see.
//
// Errors: Invalid for a filter, an order or a cursor that the indexes can't
// answer; Unauthenticated or Denied when the rule does not depend on the object;
// Canceled; Unavailable.
func (s *Store) List(ctx context.Context, o ListOptions) (List, error) {
	plan, err := query.Parse(o.Filter, o.Sort, s.opts.Indexes)
	if err != nil {
		return List{}, err
	}
	if o.Limit == 0 {
		o.Limit = DefaultPage
	}
	if o.Limit < 1 || o.Limit > MaxPage {
		return List{}, errs.New(errs.Invalid, "limit must be 1 to %d, not %d", MaxPage, o.Limit)
	}
	after, err := plan.After(o.Cursor)
	if err != nil {
		return List{}, err
	}
	call := CallOf(ctx)
	each, err := s.authorizeList(ctx, call)
	if err != nil {
		return List{}, err
	}
	page, err := s.page(ctx, plan, after, o.Limit)
	if err != nil {
		return List{}, err
	}
	list := List{Objects: make([]Stored, 0, len(page.Records))}
	size := newPageBytes(o.MaxBytes)
	for i, record := range page.Records {
		decoded, err := object.Decode(record.Body)
		if err != nil {
			return List{}, err
		}
		if !plan.Match(decoded) {
			continue
		}
		if each {
			// Only a denial leaves an object out: any other error would make the
			// page appear complete when it is not.
			err := s.allow(ctx, call, policy.List, record.Body, nil)
			if isForbidden(err) {
				continue
			}
			if errors.Is(err, policy.ErrBudget) && i > 0 {
				list.Next = plan.Cursor(page.Positions[i-1])
				return list, nil
			}
			if err != nil {
				return List{}, err
			}
		}
		shown := s.project(call, record)
		if !size.add(shown) {
			list.Next = plan.Cursor(page.Positions[i-1]) // before this object
			return list, nil
		}
		list.Objects = append(list.Objects, shown)
	}
	if page.Next != nil {
		list.Next = plan.Cursor(page.Next)
	}
	return list, nil
}

// authorizeList evaluates a rule that does not depend on the object, and reports
// otherwise that the rule must be evaluated for each object.
func (s *Store) authorizeList(ctx context.Context, call Call) (each bool, err error) {
	if !call.Client || call.Trusted || s.opts.Policy == nil || s.opts.Policy.Open(policy.List) {
		return false, nil
	}
	if s.opts.Policy.NeedsObject(policy.List) {
		return true, nil
	}
	return false, s.allow(ctx, call, policy.List, nil, nil)
}

func (s *Store) page(ctx context.Context, plan *query.Plan, after []byte, limit int) (driver.Page, error) {
	q, scan := plan.Query()
	if scan {
		return s.driver.Scan(ctx, after, limit)
	}
	q.After, q.Limit = after, limit
	return s.driver.Query(ctx, q)
}

func (s *Store) listKeys(body []byte) []driver.Key { return query.Keys(s.opts.Indexes, body) }

// Linked iterates over the objects whose key refers to a target, reading pages of
// pageSize objects. The index may lag: read the object again where it matters. It
// ends after the first error.
func (s *Store) Linked(ctx context.Context, key, target string, pageSize int) iter.Seq2[Stored, error] {
	return toStoredSeq(driver.Matches(ctx, s.driver, driver.Query{
		Index: index(key), Equal: [][]byte{[]byte(target)}, Limit: pageSize,
	}))
}

// All iterates over all objects in the order of their uuids, reading pages of
// pageSize objects. It ends after the first error.
func (s *Store) All(ctx context.Context, pageSize int) iter.Seq2[Stored, error] {
	return toStoredSeq(driver.Records(ctx, s.driver, pageSize))
}

func toStoredSeq(records iter.Seq2[driver.Record, error]) iter.Seq2[Stored, error] {
	return func(yield func(Stored, error) bool) {
		for r, err := range records {
			if !yield(Stored{UUID: r.UUID, Revision: r.Revision, Body: r.Body}, err) {
				return
			}
		}
	}
}

// Scan returns a page of all objects in the order of their uuids.
func (s *Store) Scan(ctx context.Context, after []byte, limit int) ([]Stored, []byte, error) {
	page, err := s.driver.Scan(ctx, after, limit)
	return toStored(page.Records), page.Next, err
}

func toStored(records []driver.Record) []Stored {
	out := make([]Stored, len(records))
	for i, r := range records {
		out[i] = Stored{UUID: r.UUID, Revision: r.Revision, Body: r.Body}
	}
	return out
}
