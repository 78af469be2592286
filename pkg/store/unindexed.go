package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/store/access"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/query"
)

// Limits of a list without an index, in development: see Options.Unindexed.
const (
	maxUnindexedBytes = 64 << 20
	maxMissing        = 8 // indexes that one list lacks
)

// How many objects it reads at most, and how many keys they have, of which an array has one for each element.
var (
	maxUnindexed     = 10_000
	maxUnindexedKeys = 500_000
)

// unindexedAtOnce bounds the memory: a list without an index has all objects there.
var unindexedAtOnce = make(chan struct{}, 2)

// makeUnindexedPage makes the list that cause refuses because there is no index: it reads all objects, and from there
// on does what it would with the index, under the same rules and limits. It returns cause where no index would help, or
// where there are too many objects. building are indexes that the list does not use since they are not complete.
func (l *lister) makeUnindexedPage(
	ctx context.Context, r *listRequest, building []query.Index, cause error,
) (List, error) {
	missing, err := l.missingIndexes(ctx, r, cause)
	if err != nil {
		return List{}, err
	}
	if _, err := l.authorize(ctx, r.call); err != nil {
		return List{}, err
	}
	select {
	case unindexedAtOnce <- struct{}{}:
		defer func() { <-unindexedAtOnce }()
	case <-ctx.Done():
		return List{}, errs.Wrap(context.Cause(ctx), errs.Canceled, "the list ended while others without an index read")
	}
	tooMany := errs.New(errs.Invalid, "%s; the store has more than `development: true` reads without one: %d objects, "+
		"%d MiB, or %d elements of arrays", errs.Messages(cause), maxUnindexed, maxUnindexedBytes>>20, maxUnindexedKeys)
	if n, known := l.size(ctx); known && n > 2*int64(maxUnindexed) { // the number may be an estimate
		return List{}, tooMany
	}
	with := l.with(missing)
	records, err := scan(ctx, l.driver, with.indexes, tooMany)
	if err != nil {
		return List{}, err
	}
	inMemory := *l.core
	inMemory.driver = records
	with.core = &inMemory
	list, err := with.makePage(ctx, r)
	if err != nil {
		return List{}, err
	}
	var declared []string
	for _, index := range missing {
		isBuilding := func(b query.Index) bool { return slices.Equal(b.Fields, index.Fields) }
		if !slices.ContainsFunc(building, isBuilding) {
			declared = append(declared, strconv.Quote(strings.Join(index.Fields, ", "))) // as the configuration has it
		}
	}
	if len(declared) == 0 {
		list.Warning = "an index that supports this list is being built, so it read all objects, which only " +
			"`development: true` allows"
		return list, nil
	}
	indexes := "[" + strings.Join(declared, ", ") + "]"
	list.Warning = fmt.Sprintf("no index supports this list, so it read all objects, which only `development: true` "+
		"allows, up to %d; elsewhere it is refused. Declare stores.%s.indexes: %s", maxUnindexed, l.name, indexes)
	const read = "a list has no index and read all objects of its store, which only `development: true` allows: " +
		"declare it"
	l.log.WarnContext(ctx, read, "store", l.name, "indexes", indexes)
	return list, nil
}

// with returns a lister that has further indexes.
func (l *lister) with(missing []query.Index) *lister {
	other := *l
	other.setIndexes(append(slices.Clone(l.indexes), query.Prepare(missing)...))
	return &other
}

// missingIndexes returns the indexes that a list lacks; cause says the first.
func (l *lister) missingIndexes(ctx context.Context, r *listRequest, cause error) (missing []query.Index, err error) {
	err = cause
	for {
		added := false
		for _, index := range query.MissingIndexes(err) {
			if !l.mayDeclare(index) {
				return nil, cause
			}
			same := func(i query.Index) bool { return i.Name == index.Name }
			if len(missing) < maxMissing && !slices.ContainsFunc(missing, same) {
				missing, added = append(missing, index), true
			}
		}
		if !added {
			return nil, err // of the filter or the order, or no index that can be declared supports the list
		}
		if _, err = l.with(missing).plan(ctx, r); err == nil {
			return missing, nil
		}
	}
}

// mayDeclare reports whether an index can be declared. A filter by a field reveals its value, so hidden fields can't be
// in one. Elements of mapped arrays are objects, which indexes do not compare.
func (l *lister) mayDeclare(index query.Index) bool {
	for i, name := range index.TopFields() {
		isOfArray := strings.HasSuffix(index.Fields[i], "[]") && l.rules.IsArray(name)
		if access.IsInternal(name) || l.rules.Fields().Never(name) || isOfArray {
			return false
		}
	}
	return true
}

// scannedStore is a store of which all records were read. It finds them by keys that it has computed itself.
type scannedStore struct {
	driver.Store

	records []driver.Record
	entries map[string][]scannedEntry // by index, in the order of keys and uuids
}

// scannedEntry is a key of a record.
type scannedEntry struct {
	key    [][]byte
	record int
}

// scan reads all records, for a list that is refused without an index. tooMany is returned if there are more than it
// may read.
func scan(ctx context.Context, from driver.Store, indexes []query.Index, tooMany error) (*scannedStore, error) {
	s := &scannedStore{Store: from, entries: map[string][]scannedEntry{}}
	size, keys := 0, 0
	for r, err := range driver.Records(ctx, from, MaxPage) {
		if err != nil {
			return nil, err
		}
		found := query.Keys(indexes, r.Body)
		size, keys = size+len(r.Body), keys+len(found)
		if len(s.records) == maxUnindexed || size > maxUnindexedBytes || keys > maxUnindexedKeys {
			return nil, tooMany
		}
		for _, key := range found {
			s.entries[key.Index] = append(s.entries[key.Index], scannedEntry{key.Parts, len(s.records)})
		}
		s.records = append(s.records, r)
	}
	for _, all := range s.entries {
		slices.SortFunc(all, func(a, b scannedEntry) int { return comparePositions(s.position(a), s.position(b)) })
	}
	return s, nil
}

// scannedPosition is a place in an index.
type scannedPosition struct {
	key  [][]byte
	uuid string
}

func (s *scannedStore) position(e scannedEntry) scannedPosition {
	return scannedPosition{e.key, s.records[e.record].UUID}
}

func comparePositions(a, b scannedPosition) int {
	if c := slices.CompareFunc(a.key, b.key, bytes.Compare); c != 0 {
		return c
	}
	return strings.Compare(a.uuid, b.uuid)
}

// encode writes a position: the number of parts, each part with its length, and the uuid.
func (p scannedPosition) encode() []byte {
	out := binary.AppendUvarint(nil, uint64(len(p.key)))
	for _, part := range p.key {
		out = append(binary.AppendUvarint(out, uint64(len(part))), part...)
	}
	return append(out, p.uuid...)
}

// decodePosition is the reverse of encode; false for the position of another kind of list.
func decodePosition(text []byte) (p scannedPosition, ok bool) {
	parts, n := binary.Uvarint(text)
	if n <= 0 || parts > uint64(len(text)) {
		return p, false
	}
	text = text[n:]
	for range parts {
		size, n := binary.Uvarint(text)
		if n <= 0 || size > uint64(len(text)-n) {
			return p, false
		}
		p.key, text = append(p.key, text[n:n+int(size)]), text[n+int(size):]
	}
	p.uuid = string(text)
	return p, true
}

// Query implements driver.Store.
func (s *scannedStore) Query(_ context.Context, q driver.Query) (driver.Page, error) {
	var page driver.Page
	var after scannedPosition
	if q.After != nil {
		var ok bool
		if after, ok = decodePosition(q.After); !ok {
			return page, errPlace()
		}
	}
	all := s.entries[q.Index]
	last := -1
	for i := range all {
		e := all[i]
		if q.Descending {
			e = all[len(all)-1-i]
		}
		if !matchesKey(q, e.key) || e.record == last {
			continue
		}
		at := s.position(e)
		if c := comparePositions(at, after); q.After != nil && (c == 0 || (c < 0) != q.Descending) {
			continue
		}
		last = e.record
		if !page.Append(s.records[e.record], at.encode(), q.Limit, q.PageBytes()) {
			break
		}
	}
	return page, nil
}

// matchesKey reports whether a query finds a key.
func matchesKey(q driver.Query, key [][]byte) bool {
	if len(key) < len(q.Equal) {
		return false
	}
	for i, part := range q.Equal {
		if !bytes.Equal(part, key[i]) {
			return false
		}
	}
	if len(key) == len(q.Equal) {
		return true
	}
	next := key[len(q.Equal)]
	return (q.From == nil || bytes.Compare(next, q.From) >= 0) && (q.To == nil || bytes.Compare(next, q.To) < 0)
}

// Position implements driver.Store.
func (s *scannedStore) Position(_ string, key [][]byte, uuid string) []byte {
	return scannedPosition{key, uuid}.encode()
}
