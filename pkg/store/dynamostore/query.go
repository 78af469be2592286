package dynamostore

import (
	"bytes"
	"context"
	"slices"

	"belfry/pkg/store/driver"
)

// pageSize is the number of bytes of bodies or payloads at which a page ends before its
// limit.
const pageSize = driver.MaxPageBytes

// firstReads is how many records are read before anything is known of their size.
const firstReads = 16

// Query implements driver.Store. Reads are strongly consistent: indexes don't lag.
func (s *store) Query(ctx context.Context, q driver.Query) (driver.Page, error) {
	if err := ctx.Err(); err != nil {
		return driver.Page{}, errCanceled(err)
	}
	ix := s.indexes.byName[q.Index]
	if err := q.Check(ix.Index()); err != nil {
		return driver.Page{}, err
	}
	sp := &span{index: ix.ID, after: q.After, descending: q.Descending}
	var prefix []byte
	for _, part := range q.Equal {
		prefix = driver.AppendPartEnd(driver.AppendPart(prefix, part))
	}
	sp.low, sp.high = prefix, afterPrefix(prefix)
	if q.From != nil {
		sp.low = driver.AppendPart(bytes.Clone(prefix), q.From)
	}
	if q.To != nil {
		sp.high = driver.AppendPart(bytes.Clone(prefix), q.To)
		if bytes.Compare(sp.low, sp.high) >= 0 {
			return driver.Page{}, nil
		}
	}
	shards := allShards()
	if len(q.Equal) > 0 {
		shards = []int{shardOfPart(q.Equal[0])}
	}
	return s.page(ctx, s.readers(sp, shards, q.Limit), q.Limit, min(q.PageBytes(), s.b.pageSize))
}

// Position implements driver.Store.
func (s *store) Position(_ string, key [][]byte, uuid string) []byte {
	var at []byte
	for _, part := range key {
		at = driver.AppendPartEnd(driver.AppendPart(at, part))
	}
	return driver.AppendPartEnd(driver.AppendPart(at, []byte(uuid)))
}

// Scan implements driver.Store.
func (s *store) Scan(ctx context.Context, after []byte, limit int) (driver.Page, error) {
	return s.scan(ctx, &span{index: liveIndex, after: after}, limit)
}

// ScanBackward implements driver.Store.
func (s *store) ScanBackward(ctx context.Context, before []byte, limit int) (driver.Page, error) {
	return s.scan(ctx, &span{index: liveIndex, after: before, descending: true}, limit)
}

func (s *store) scan(ctx context.Context, live *span, limit int) (driver.Page, error) {
	if err := ctx.Err(); err != nil {
		return driver.Page{}, errCanceled(err)
	}
	if err := driver.CheckLimit(limit); err != nil {
		return driver.Page{}, err
	}
	return s.page(ctx, s.readers(live, allShards(), limit), limit, s.b.pageSize)
}

func allShards() []int {
	list := make([]int, shards)
	for i := range list {
		list[i] = i
	}
	return list
}

// page reads the records at the next positions, without those that no longer have the
// key.
func (s *store) page(ctx context.Context, readers []*reader, limit, maxBytes int) (page driver.Page, err error) {
	positions, more, err := mergeReaders(ctx, readers, limit)
	if err != nil {
		return page, err
	}
	index := readers[0].span.index
	var last []byte
	for len(positions) > 0 {
		n := min(len(positions), nextReads(&page, maxBytes))
		records, err := s.recordsAt(ctx, positions[:n])
		if err != nil {
			return driver.Page{}, err
		}
		for _, f := range positions[:n] {
			r := records[f.uuid]
			if s.matchesEntry(index, f, r) && !page.Append(r.record(), f.position, limit, maxBytes) {
				page.Next = last
				return page, nil
			}
			last = f.position
		}
		positions = positions[n:]
	}
	if more {
		page.Next = last
	}
	return page, nil
}

// nextReads returns how many records to read next: about as many as the page still takes, so that
// little is read in vain.
func nextReads(page *driver.Page, maxBytes int) int {
	size := page.Size()
	if size == 0 {
		return firstReads
	}
	return min(batchReads, max(0, maxBytes-size)*len(page.Records)/size+1)
}

func (s *store) recordsAt(ctx context.Context, positions []entryPosition) (map[string]*record, error) {
	var uuids []string
	seen := make(map[string]bool, len(positions))
	for _, f := range positions {
		if !seen[f.uuid] {
			seen[f.uuid] = true
			uuids = append(uuids, f.uuid)
		}
	}
	return s.readMany(ctx, uuids, withoutEvents)
}

// matchesEntry reports whether a record has the key of an entry. Entries that it does
// not have and that are old enough to be orphans go to the cleaner.
func (s *store) matchesEntry(index uint32, f entryPosition, r *record) (has bool) {
	key := keyAt(index, f.position)
	var left []item
	for _, t := range f.tags {
		e := entry{key: key, tag: t}
		if r != nil && r.has(e) {
			has = true
		} else if t.before(s.b.now().Add(-orphanAge)) {
			left = append(left, e.itemKey(f.uuid))
		}
	}
	s.b.cleaner.add(garbage{table: s.table, keys: left})
	return has
}

func (r *record) has(wanted entry) bool {
	return slices.Contains(r.entries, wanted)
}
