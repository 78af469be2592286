package store

import (
	"context"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// KeyIndex is an index whose keys a function computes from objects. Clients can't use it: belfry's own services do.
type KeyIndex struct {
	Name  string // unique among those of the store, without a dot; changes when Keys computes others
	Parts int    // of a key
	Multi bool   // an object may have several keys

	// Keys returns the keys of an encoded object; none: the index does not have the object. A part has at most
	// driver.MaxPart bytes.
	Keys func(body []byte) [][][]byte
}

// ownIndex is the name of the driver's index of a KeyIndex. That of a list has a dot before the format of its keys.
func ownIndex(name string) string { return "own." + name }

// spec describes the index to a driver.
func (i KeyIndex) spec() driver.Index {
	return driver.Index{Name: ownIndex(i.Name), Parts: i.Parts, Multi: i.Multi}
}

// keys computes the keys of an encoded object.
func (i KeyIndex) keys(body []byte) []driver.Key {
	computed := i.Keys(body)
	keys := make([]driver.Key, len(computed))
	for j, parts := range computed {
		keys[j] = driver.Key{Index: ownIndex(i.Name), Parts: parts}
	}
	return keys
}

// ByKey selects objects by a KeyIndex.
type ByKey struct {
	Index      string   // its name
	Equal      [][]byte // leading parts; all of them if an object may have several keys
	Descending bool
	After      []byte // KeyPage.Next of the page before; nil: the first page
	Limit      int
}

// KeyPage is a page of objects in the order of their keys, then of their uuids.
type KeyPage struct {
	Objects   []Stored
	Positions [][]byte // of each object: ByKey.After of a page that begins after it
	Next      []byte   // nil after the last page
}

func (q ByKey) query() driver.Query {
	return driver.Query{Index: ownIndex(q.Index), Equal: q.Equal, Descending: q.Descending, After: q.After,
		Limit: q.Limit}
}

// ListByKey returns a page of a KeyIndex, for belfry itself: it checks no rights. The index may lag, so an object may no
// longer have the key. Unavailable while the index is being built.
func (s *Store) ListByKey(ctx context.Context, q ByKey) (p KeyPage, err error) {
	if err := s.keyed(ctx, q.Index); err != nil {
		return KeyPage{}, err
	}
	page, err := s.core.driver.Query(ctx, q.query())
	if err != nil {
		return KeyPage{}, err
	}
	p.Positions, p.Next = page.Positions, page.Next
	for _, r := range page.Records {
		p.Objects = append(p.Objects, toStored(r))
	}
	return p, s.keyed(ctx, q.Index)
}

// CountByKey returns how many objects a KeyIndex has, at most limit. Without a backend that counts keys it is limit.
func (s *Store) CountByKey(ctx context.Context, q ByKey, limit int) (int, error) {
	counter, ok := s.core.driver.(driver.KeyCounter)
	if !ok {
		return limit, nil
	}
	n, all, err := counter.CountKeys(ctx, q.query(), limit)
	if !all {
		n = limit
	}
	return n, err
}

// keyed returns Unavailable while a KeyIndex is being built.
func (s *Store) keyed(ctx context.Context, name string) error {
	known, err := s.opened.state.recent(ctx)
	if err != nil {
		return err
	}
	for _, i := range s.opened.spec {
		if i.Name != ownIndex(name) {
			continue
		}
		if known.has(i.Name) {
			short, _, _ := strings.Cut(name, "-")
			return s.opened.state.errBuilding(short, "objects are found by it")
		}
		return nil
	}
	return errs.New(errs.Internal, "store %s has no index %s", s.Name(), name)
}
