package filestore

import (
	"bytes"
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// Query implements driver.Store. It reads a snapshot; indexes don't lag.
func (s *store) Query(ctx context.Context, q driver.Query) (_ driver.Page, err error) {
	defer s.b.health.recoverFatal(&err)
	if err := s.b.ready(ctx); err != nil {
		return driver.Page{}, err
	}
	ix := s.indexes[q.Index]
	if err := q.Check(ix.Index()); err != nil {
		return driver.Page{}, err
	}
	snapshot := s.b.db.NewSnapshot()
	defer func() { err = errors.Join(err, wrapReadError(snapshot.Close())) }()
	it, err := snapshot.NewIterWithContext(ctx, s.bounds(ix, q))
	if err != nil {
		return driver.Page{}, wrapReadError(err)
	}
	page, err := s.entryPage(ctx, snapshot, it, ix, q)
	return s.syncedPage(ctx, page, errors.Join(err, wrapReadError(it.Close())))
}

// Position implements driver.Store.
func (s *store) Position(name string, key [][]byte, uuid string) []byte {
	return append(appendParts(appendIndex(nil, s.indexes[name].ID), key), uuid...)
}

// bounds returns the iterator bounds of a page of a query.
func (s *store) bounds(ix index, q driver.Query) *pebble.IterOptions {
	prefix := appendParts(appendIndex(appendPrefix(nil, s.id, kindIndex), ix.ID), q.Equal)
	o := prefixBounds(prefix)
	if q.From != nil {
		o.LowerBound = driver.AppendPart(bytes.Clone(prefix), q.From)
	}
	if q.To != nil {
		o.UpperBound = driver.AppendPart(bytes.Clone(prefix), q.To)
	}
	if q.After == nil {
		return o
	}
	last := append(appendPrefix(nil, s.id, kindIndex), q.After...)
	if q.Descending {
		o.UpperBound = minKey(o.UpperBound, last)
	} else {
		o.LowerBound = maxKey(o.LowerBound, keyAfter(last))
	}
	return o
}

func minKey(a, b []byte) []byte {
	if bytes.Compare(a, b) < 0 {
		return a
	}
	return b
}

func maxKey(a, b []byte) []byte {
	if bytes.Compare(a, b) > 0 {
		return a
	}
	return b
}

// entryPage reads the records of a page of index entries.
func (s *store) entryPage(ctx context.Context, from pebble.Reader, it *pebble.Iterator, ix index,
	q driver.Query) (page driver.Page, err error) {
	ok, next := it.First(), it.Next
	if q.Descending {
		ok, next = it.Last(), it.Prev
	}
	for ; ok && !page.Full(q.Limit); ok = next() {
		if err := ctx.Err(); err != nil {
			return page, errCanceled(err)
		}
		uuid, whole := uuidOfEntry(it.Key(), ix.Parts)
		if !whole {
			return page, errFormat("an index entry")
		}
		record, err := s.recordAt(from, uuid)
		if err != nil {
			return page, err
		}
		if !page.Append(record, it.Key()[prefixSize:], q.Limit, q.PageBytes()) {
			return page, nil
		}
	}
	return page, nil
}

// recordAt reads the record of an index entry in the same snapshot.
func (s *store) recordAt(from pebble.Reader, uuid string) (record driver.Record, err error) {
	buf := s.b.keys.get()
	defer s.b.keys.put(buf)
	*buf = appendUUIDKey(*buf, s.id, kindObject, uuid)
	value, closer, err := from.Get(*buf)
	if errors.Is(err, pebble.ErrNotFound) {
		return record, errAbsent(uuid)
	}
	if err != nil {
		return record, wrapReadError(err)
	}
	record, err = s.liveRecord(from, uuid, value)
	return record, errors.Join(err, wrapReadError(closer.Close()))
}

// errAbsent is the error of an index entry without a record.
func errAbsent(uuid string) error {
	return errs.New(errs.Internal, "the data folder is corrupt: an index refers to the object %s, which does not exist",
		uuid)
}

// Scan implements driver.Store.
func (s *store) Scan(ctx context.Context, from []byte, limit int) (driver.Page, error) {
	o := prefixBounds(appendPrefix(nil, s.id, kindObject))
	if from != nil {
		o.LowerBound = keyAfter(appendUUIDKey(nil, s.id, kindObject, string(from)))
	}
	return s.scan(ctx, o, limit, (*pebble.Iterator).First, (*pebble.Iterator).Next)
}

// ScanBackward implements driver.Store.
func (s *store) ScanBackward(ctx context.Context, before []byte, limit int) (driver.Page, error) {
	o := prefixBounds(appendPrefix(nil, s.id, kindObject))
	if before != nil {
		o.UpperBound = minKey(o.UpperBound, appendUUIDKey(nil, s.id, kindObject, string(before)))
	}
	return s.scan(ctx, o, limit, (*pebble.Iterator).Last, (*pebble.Iterator).Prev)
}

// scan reads a page of records from the first to the next, in either direction.
func (s *store) scan(ctx context.Context, o *pebble.IterOptions, limit int,
	first, next func(*pebble.Iterator) bool) (_ driver.Page, err error) {
	defer s.b.health.recoverFatal(&err)
	if err := s.b.ready(ctx); err != nil {
		return driver.Page{}, err
	}
	if err := driver.CheckLimit(limit); err != nil {
		return driver.Page{}, err
	}
	snapshot := s.b.db.NewSnapshot() // for chunks, which other iterators read
	defer func() { err = errors.Join(err, wrapReadError(snapshot.Close())) }()
	it, err := snapshot.NewIterWithContext(ctx, o)
	if err != nil {
		return driver.Page{}, wrapReadError(err)
	}
	page, err := s.recordPage(ctx, snapshot, it, limit, first, next)
	return s.syncedPage(ctx, page, errors.Join(err, wrapReadError(it.Close())))
}

// syncedPage returns a page that was read without an error once all in it is synced.
func (s *store) syncedPage(ctx context.Context, page driver.Page, err error) (driver.Page, error) {
	if err == nil {
		err = s.awaitAll(ctx)
	}
	if err != nil {
		return driver.Page{}, err
	}
	return page, nil
}

func (s *store) recordPage(ctx context.Context, from pebble.Reader, it *pebble.Iterator, limit int,
	first, next func(*pebble.Iterator) bool) (page driver.Page, err error) {
	for ok := first(it); ok && !page.Full(limit); ok = next(it) {
		if err := ctx.Err(); err != nil {
			return page, errCanceled(err)
		}
		record, err := s.liveRecord(from, string(it.Key()[prefixSize:]), it.Value())
		if err != nil {
			return page, err
		}
		if !page.Append(record, it.Key()[prefixSize:], limit, driver.MaxPageBytes) {
			return page, nil
		}
	}
	return page, nil
}
