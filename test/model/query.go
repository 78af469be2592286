package model

import (
	"bytes"
	"context"
	"slices"
	"sort"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

func (s *memoryStore) Scan(ctx context.Context, after []byte, limit int) (driver.Page, error) {
	return s.scan(ctx, after, limit, false)
}

func (s *memoryStore) ScanBackward(ctx context.Context, before []byte, limit int) (driver.Page, error) {
	return s.scan(ctx, before, limit, true)
}

func (s *memoryStore) scan(ctx context.Context, after []byte, limit int, backward bool) (driver.Page, error) {
	if err := canceled(ctx); err != nil {
		return driver.Page{}, err
	}
	if err := driver.CheckLimit(limit); err != nil {
		return driver.Page{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []hit
	for uuid, r := range s.rows {
		if !r.Deleted {
			found = append(found, hit{uuid, r.Record})
		}
	}
	return pageOf(found, backward, after, limit, driver.MaxPageBytes)
}

func (s *memoryStore) Query(ctx context.Context, q driver.Query) (driver.Page, error) {
	if err := canceled(ctx); err != nil {
		return driver.Page{}, err
	}
	at := slices.IndexFunc(s.spec.Indexes, func(ix driver.Index) bool { return ix.Name == q.Index })
	var ix driver.Index
	if at >= 0 {
		ix = s.spec.Indexes[at]
	}
	if err := q.Check(ix); err != nil {
		return driver.Page{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return search(s.rows, q)
}

func (*memoryStore) Position(_ string, key [][]byte, uuid string) []byte {
	return append(appendParts(nil, key), uuid...)
}

func search(rows map[string]*row, q driver.Query) (driver.Page, error) {
	var found []hit
	for uuid, r := range rows {
		own := len(found)
		for _, key := range r.keys {
			if key.Index != q.Index || !selects(q, key.Parts) {
				continue
			}
			h := hit{string(appendParts(nil, key.Parts)) + uuid, r.Record}
			if !slices.ContainsFunc(found[own:], func(o hit) bool { return o.place == h.place }) {
				found = append(found, h)
			}
		}
	}
	return pageOf(found, q.Descending, q.After, q.Limit, q.PageBytes())
}

// hit is a record and its sort key.
type hit struct {
	place  string
	record driver.Record
}

func pageOf(found []hit, descending bool, after []byte, limit, maxBytes int) (driver.Page, error) {
	if limit < 1 {
		return driver.Page{}, errs.New(errs.Internal, "the limit of a page must be at least 1")
	}
	before := func(a, b string) bool { return a < b != descending && a != b }
	sort.Slice(found, func(i, k int) bool { return before(found[i].place, found[k].place) })
	if after != nil {
		found = found[sort.Search(len(found), func(i int) bool { return before(string(after), found[i].place) }):]
	}
	page := driver.Page{}
	for _, h := range found {
		if !page.Append(h.record, []byte(h.place), limit, maxBytes) {
			break
		}
	}
	return page, nil
}

func selects(q driver.Query, parts [][]byte) bool {
	if len(q.Equal) > len(parts) {
		return false
	}
	for i, part := range q.Equal {
		if !bytes.Equal(part, parts[i]) {
			return false
		}
	}
	if q.From == nil && q.To == nil {
		return true
	}
	if len(q.Equal) == len(parts) {
		return false
	}
	part := parts[len(q.Equal)]
	return (q.From == nil || bytes.Compare(part, q.From) >= 0) &&
		(q.To == nil || bytes.Compare(part, q.To) < 0)
}

// appendParts encodes parts so that encodings sort as the parts do.
func appendParts(dst []byte, parts [][]byte) []byte {
	for _, part := range parts {
		for _, b := range part {
			if dst = append(dst, b); b == 0 {
				dst = append(dst, 0xff)
			}
		}
		dst = append(dst, 0, 1)
	}
	return dst
}
