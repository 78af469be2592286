package dynamostore

import (
	"bytes"
	"context"

	"belfry/pkg/store/driver"
)

// pageSize is how many bytes of bodies, or payloads, a page gets at least
// before it ends short of its limit.
const pageSize = 8 << 20

// Query is part of driver.Store. It reads strongly: nothing lags.
func (s *store) Query(ctx context.Context, q driver.Query) (driver.Page, error) {
	if err := ctx.Err(); err != nil {
		return driver.Page{}, canceled(err)
	}
	ix := s.indexes[q.Index]
	if err := q.Check(driver.Index{Name: ix.Name, Parts: ix.Parts, Multi: ix.Multi}); err != nil {
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
		sp.high = afterPrefix(driver.AppendPart(bytes.Clone(prefix), q.To))
	}
	shards := allShards()
	if len(q.Equal) > 0 {
		shards = []int{shardOfPart(q.Equal[0])}
	}
	return s.page(ctx, s.readers(sp, shards, q.Limit), q.Limit)
}

// Scan is part of driver.Store.
func (s *store) Scan(ctx context.Context, after []byte, limit int) (driver.Page, error) {
	if err := ctx.Err(); err != nil {
		return driver.Page{}, canceled(err)
	}
	if err := driver.CheckLimit(limit); err != nil {
		return driver.Page{}, err
	}
	return s.page(ctx, s.readers(&span{index: liveIndex, after: after}, allShards(), limit), limit)
}

func allShards() []int {
	list := make([]int, shards)
	for i := range list {
		list[i] = i
	}
	return list
}

// page reads the records of the next places. An entry counts only if its
// record says so: then the record has this key.
func (s *store) page(ctx context.Context, readers []*reader, limit int) (page driver.Page, err error) {
	places, more, err := take(ctx, readers, limit)
	if err != nil {
		return page, err
	}
	index := readers[0].span.index
	for size := 0; len(places) > 0; {
		n := min(len(places), batchReads)
		records, err := s.recordsAt(ctx, places[:n])
		if err != nil {
			return driver.Page{}, err
		}
		for _, f := range places[:n] {
			if r := records[f.uuid]; s.counts(index, f, r) {
				page.Records = append(page.Records, r.record())
				size += len(r.body)
			}
		}
		last := places[n-1]
		if places = places[n:]; len(places) == 0 && !more {
			return page, nil
		}
		if len(places) == 0 || size >= s.b.pageSize {
			page.Next = last.place
			return page, nil
		}
	}
	return page, nil
}

func (s *store) recordsAt(ctx context.Context, places []found) (map[string]*record, error) {
	var uuids []string
	seen := make(map[string]bool, len(places))
	for _, f := range places {
		if !seen[f.uuid] {
			seen[f.uuid] = true
			uuids = append(uuids, f.uuid)
		}
	}
	return s.readMany(ctx, uuids, withoutEvents)
}

// counts reports whether a record has the key that was found, and hands
// entries that it does not have, and never will, to the broom.
func (s *store) counts(index uint32, f found, r *record) (has bool) {
	key := keyAt(index, f.place)
	var left []item
	for _, t := range f.tags {
		e := entry{key: key, tag: t}
		if r != nil && r.has(e) {
			has = true
		} else if t.before(s.b.now().Add(-leftAfter)) {
			left = append(left, e.itemKey(f.uuid))
		}
	}
	s.b.broom.add(litter{table: s.table, keys: left})
	return has
}

func (r *record) has(wanted entry) bool {
	for _, e := range r.entries {
		if e == wanted {
			return true
		}
	}
	return false
}
