package filestore

import (
	"bytes"
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"belfry/pkg/store/driver"
)

var _ driver.Intersecter = (*store)(nil)

// patience is twice how many records an intersection reads in vain before it compares keys. When more entries in a row
// than this are those of records with all keys, it reads records again.
const patience = 4

// Intersect implements driver.Intersecter. It reads a snapshot; indexes don't lag.
func (s *store) Intersect(ctx context.Context, q driver.Query, conditions []driver.KeyCondition,
	maxKeys int) (page driver.Page, err error) {
	err = s.intersect(ctx, q, conditions, maxKeys, func(x *intersection) (err error) {
		page, err = x.page(ctx, q)
		return err
	})
	return s.syncedPage(ctx, page, err)
}

// CountCommon implements driver.Intersecter.
func (s *store) CountCommon(ctx context.Context, q driver.Query, conditions []driver.KeyCondition,
	maxKeys int) (n int, all bool, err error) {
	q.Limit, q.After, q.Descending = 1, nil, false
	err = s.intersect(ctx, q, conditions, maxKeys, func(x *intersection) (err error) {
		n, all, err = x.count(ctx)
		return err
	})
	if err == nil {
		err = s.awaitAll(ctx)
	}
	return n, all && err == nil, err
}

// intersect calls read with an intersection in a snapshot.
func (s *store) intersect(ctx context.Context, q driver.Query, conditions []driver.KeyCondition, maxKeys int,
	read func(*intersection) error) (err error) {
	defer s.b.health.recoverFatal(&err)
	if err := s.b.ready(ctx); err != nil {
		return err
	}
	ix := s.indexes[q.Index]
	if err := q.Check(ix.Index()); err != nil {
		return err
	}
	x := &intersection{store: s, ix: ix, descending: q.Descending, maxKeys: maxKeys, credit: patience}
	for _, c := range conditions {
		of := s.indexes[c.Index]
		if err := c.Check(of.Index(), q, ix.Index()); err != nil {
			return err
		}
		var either anyOf
		for _, parts := range c.Equal {
			either = append(either, &span{start: s.start(of, parts)})
		}
		x.others = append(x.others, either)
	}
	x.from = s.b.db.NewSnapshot()
	defer func() { err = errors.Join(err, x.close()) }()
	x.lead = &span{start: s.start(ix, q.Equal)}
	if x.lead.it, err = x.from.NewIterWithContext(ctx, s.bounds(ix, q)); err != nil {
		return wrapReadError(err)
	}
	return read(x)
}

// start returns the prefix of the entries of an index whose keys begin with some parts.
func (s *store) start(ix index, parts [][]byte) []byte {
	return appendParts(appendIndex(appendPrefix(nil, s.id, kindIndex), ix.ID), parts)
}

// intersection is the entries of the lead, for a query, whose records also have an entry with the same end in each of
// the others.
//
// While at least two of three records match, it reads the records, which contain all of their entries. Else it makes a
// leapfrog join: the lead and the others move in turn to the first entry at or after that of the other, until they are
// at the same entry. So it compares at most about two entries for each entry of the smallest of them.
type intersection struct {
	store      *store
	ix         index
	from       *pebble.Snapshot
	lead       *span
	others     []anyOf
	descending bool

	credit  int // more than 0: records are read that possibly lack an entry
	keys    int // that were compared
	maxKeys int
	key     []byte // of the record that is read
	passed  []byte // the position of the last entry of the lead that is done with
	stopped bool   // after maxKeys
}

// page reads the records of a page.
func (x *intersection) page(ctx context.Context, q driver.Query) (page driver.Page, _ error) {
	for x.lead.first(x.descending); x.lead.ok && !page.Full(q.Limit); x.lead.next(x.descending) {
		found, err := x.find(ctx, x.credit > 0)
		if err != nil {
			return page, err
		}
		if !found {
			break
		}
		record, has, err := x.record()
		if err != nil {
			return page, err
		}
		x.noteHit(has)
		if has && !page.Append(record, x.position(), q.Limit, q.PageBytes()) {
			break
		}
		x.markPassed()
	}
	if x.stopped {
		page.Next = x.passed
	}
	page.Keys = x.keys
	return page, nil
}

// count counts the records without reading them.
func (x *intersection) count(ctx context.Context) (n int, all bool, err error) {
	for x.lead.first(x.descending); x.lead.ok; x.lead.next(x.descending) {
		found, err := x.find(ctx, false)
		if err != nil || !found {
			return n, !x.stopped, err
		}
		n++
		x.markPassed()
	}
	return n, true, nil
}

// find moves the lead on to an entry that each of the others has, or that they may have if that is not to be
// compared. It reports false at the end and when too many keys were compared.
func (x *intersection) find(ctx context.Context, uncompared bool) (found bool, err error) {
	for x.lead.ok {
		if err := ctx.Err(); err != nil {
			return false, errCanceled(err)
		}
		if x.keys >= x.maxKeys && x.passed != nil {
			x.stopped = true
			return false, nil
		}
		x.keys++
		if uncompared {
			return true, nil
		}
		at, err := x.align(ctx, x.lead.suffix())
		if err != nil || at == nil {
			return false, err
		}
		if bytes.Equal(at, x.lead.suffix()) {
			return true, nil
		}
		x.markPassed()
		x.credit = -patience
		x.lead.seek(at, x.descending)
	}
	return false, nil
}

// align moves the others to a tail or to the first one after it, and returns the first tail that all of them may have,
// or nil.
func (x *intersection) align(ctx context.Context, tail []byte) (at []byte, err error) {
	for _, either := range x.others {
		if at, err = x.seek(ctx, either, tail); err != nil || !bytes.Equal(at, tail) {
			return at, err
		}
	}
	return tail, nil
}

// seek moves spans to a tail, and returns the first tail that one of them has from there on, or nil.
func (x *intersection) seek(ctx context.Context, either anyOf, tail []byte) (first []byte, err error) {
	for _, s := range either {
		if s.it == nil {
			if s.it, err = x.from.NewIterWithContext(ctx, prefixBounds(s.start)); err != nil {
				return nil, wrapReadError(err)
			}
			s.ok = true
		}
		if s.ok && (!s.placed || before(s.suffix(), tail, x.descending)) {
			x.keys++
			s.seek(tail, x.descending)
		}
		if s.ok && (first == nil || before(s.suffix(), first, x.descending)) {
			first = s.suffix()
		}
	}
	return first, nil
}

// record reads the record of the lead's entry, if it has the others, too.
func (x *intersection) record() (record driver.Record, has bool, err error) {
	uuid, whole := uuidOfEntry(x.lead.it.Key(), x.ix.Parts)
	if !whole {
		return record, false, errFormat("an index entry")
	}
	x.key = appendUUIDKey(x.key[:0], x.store.id, kindObject, uuid)
	value, closer, err := x.from.Get(x.key)
	if errors.Is(err, pebble.ErrNotFound) {
		return record, false, errAbsent(uuid)
	}
	if err != nil {
		return record, false, wrapReadError(err)
	}
	r, err := decodeRecord(value)
	if parts := x.lead.suffix(); err == nil && x.inOthers(r.entries, parts[:len(parts)-len(uuid)]) {
		has = true
		record, err = x.store.liveRecord(x.from, uuid, value)
	}
	return record, has, errors.Join(err, wrapReadError(closer.Close()))
}

// inOthers reports whether a record has the others' entries that end with these parts.
func (x *intersection) inOthers(entries, parts []byte) bool {
	for _, either := range x.others {
		if !either.in(entries, parts) {
			return false
		}
	}
	return true
}

// noteHit notes whether a record that was read has all entries: whether the next ones are to be read at once.
func (x *intersection) noteHit(has bool) {
	if has {
		x.credit = min(x.credit+1, patience)
	} else {
		x.credit -= 2
	}
}

func (x *intersection) position() []byte { return x.lead.it.Key()[prefixSize:] }

func (x *intersection) markPassed() { x.passed = append(x.passed[:0], x.position()...) }

func (x *intersection) close() (err error) {
	for _, either := range append(x.others, anyOf{x.lead}) {
		for _, s := range either {
			if s.it != nil {
				err = errors.Join(err, wrapReadError(s.it.Close()))
			}
		}
	}
	return errors.Join(err, wrapReadError(x.from.Close()))
}

// span is the entries of an index that begin alike. Its tails are what follows.
type span struct {
	start  []byte
	it     *pebble.Iterator // nil until it is needed
	ok     bool             // there is an entry, or nothing is known yet
	placed bool             // the iterator is at an entry, or at the end
	target []byte           // of a seek
}

// suffix is what follows the beginning of the current entry.
func (s *span) suffix() []byte { return s.it.Key()[len(s.start):] }

func (s *span) first(descending bool) {
	if s.placed = true; descending {
		s.ok = s.it.Last()
	} else {
		s.ok = s.it.First()
	}
}

func (s *span) next(descending bool) {
	if descending {
		s.ok = s.it.Prev()
	} else {
		s.ok = s.it.Next()
	}
}

// seek moves to the entry with a tail, or to the first one after it.
func (s *span) seek(tail []byte, descending bool) {
	s.target = append(append(s.target[:0], s.start...), tail...)
	if s.placed = true; descending {
		s.ok = s.it.SeekLT(append(s.target, 0x00))
	} else {
		s.ok = s.it.SeekGE(s.target)
	}
}

// before reports whether a tail comes before another one.
func before(a, b []byte, descending bool) bool {
	if descending {
		a, b = b, a
	}
	return bytes.Compare(a, b) < 0
}

// anyOf is spans of one of which a record has an entry.
type anyOf []*span

// in reports whether one of the spans has one of the entries of a record: the one that ends with these parts.
func (a anyOf) in(entries, parts []byte) bool {
	for entry, rest, more := cutField(entries); more; entry, rest, more = cutField(rest) {
		for _, s := range a {
			if start := s.start[prefixSize:]; len(entry) == len(start)+len(parts) && bytes.HasPrefix(entry, start) &&
				bytes.HasSuffix(entry, parts) {
				return true
			}
		}
	}
	return false
}
