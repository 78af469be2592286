package dynamostore

import (
	"bytes"
	"context"
	"math"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"belfry/pkg/store/driver"
)

// has reports whether the handle lists an index.
func (o *ownIndexes) has(id uint32) bool {
	return slices.ContainsFunc(o.all, func(ix index) bool { return ix.ID == id })
}

// beforeWrite makes the indexes incomplete that the handle does not list: its writes lack their keys.
func (s *store) beforeWrite(ctx context.Context) error {
	return s.first.Do(ctx, func() error {
		return s.b.changeCatalog(ctx, s.table, func(def *definition) (changed bool, err error) {
			def.Indexes, changed = def.Indexes.Unlist(s.indexes.has)
			return changed, nil
		})
	})
}

// Building implements driver.Indexes.
func (s *store) Building(ctx context.Context) (builds []driver.Build, err error) {
	if err := ctx.Err(); err != nil {
		return nil, errCanceled(err)
	}
	err = s.b.changeCatalog(ctx, s.table, func(def *definition) (changed bool, err error) {
		builds, def.Indexes, changed = def.Indexes.Building(s.indexes.all)
		return changed, nil
	})
	return builds, err
}

// Complete implements driver.Indexes.
//
// A process that crashed may have left a record without the entry by which Scan finds it. Its event is pending, so it
// is reindexed here.
func (s *store) Complete(ctx context.Context, builds []driver.Build) error {
	if err := ctx.Err(); err != nil {
		return errCanceled(err)
	}
	if err := s.reindexPending(ctx); err != nil {
		return err
	}
	return s.b.changeCatalog(ctx, s.table, func(def *definition) (changed bool, err error) {
		def.Indexes, changed, err = def.Indexes.Complete(s.indexes.all, builds)
		return changed, err
	})
}

// Release implements driver.Indexes. Entries stay in the table, where nothing reads them, until their records are
// written.
func (s *store) Release(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return errCanceled(err)
	}
	return s.b.changeCatalog(ctx, s.table, func(def *definition) (changed bool, err error) {
		kept, removed := def.Indexes.Release(s.indexes.has)
		def.Indexes = kept
		return len(removed) > 0, nil
	})
}

// Reindex implements driver.Indexes.
func (s *store) Reindex(ctx context.Context, uuids []string) error {
	if err := ctx.Err(); err != nil {
		return errCanceled(err)
	}
	if err := s.beforeWrite(ctx); err != nil {
		return err
	}
	for some := range slices.Chunk(uuids, batchReads) {
		records, err := s.readMany(ctx, some, withoutEvents)
		if err != nil {
			return err
		}
		group, gctx := errgroup.WithContext(ctx)
		group.SetLimit(maxInFlight)
		for _, r := range records {
			group.Go(func() error { return s.refill(gctx, r) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// reindexPending reindexes the records with pending events.
func (s *store) reindexPending(ctx context.Context) error {
	for shard := range shards {
		for at, more := (cursor{shard: shard}), true; more; {
			var uuids []string
			var err error
			if uuids, more, err = s.pendingRecords(ctx, at, batchReads); err != nil {
				return err
			}
			if err := s.Reindex(ctx, uuids); err != nil {
				return err
			}
			if len(uuids) > 0 {
				at.uuid, at.revision = uuids[len(uuids)-1], math.MaxUint64
			}
		}
	}
	return nil
}

// refill updates the keys of a record. It changes neither the revision nor the
// events, and starts over after a concurrent write.
func (s *store) refill(ctx context.Context, r *record) error {
	for range maxRetries {
		if r == nil || r.deleted {
			return nil
		}
		var keys []driver.Key
		if s.computeKeys != nil { // else it has no indexes
			keys = s.computeKeys(bytes.Clone(r.body))
		}
		done, err := s.refillOnce(ctx, r, keys)
		if err != nil || done {
			return err
		}
		if r, err = s.read(ctx, r.uuid); err != nil {
			return err
		}
	}
	return s.b.unavailable(nil, "the index keys of an object can't be updated: it is being changed continuously")
}

func (s *store) refillOnce(ctx context.Context, r *record, given []driver.Key) (done bool, err error) {
	w := &driver.Write{UUID: r.uuid, Body: r.body, Keys: given}
	p := &plan{w: w, base: s.snapshotOf(r), tag: newTag(s.b.now()), head: r.head, arrays: r.value.arrays}
	if err := p.setEntries(s, p.base); err != nil {
		return false, err
	}
	if sameEntries(p.entries, r.entries) {
		return true, nil
	}
	if err := p.setValue(false); err != nil {
		return false, err
	}
	p.setNote()
	if err := s.writeOverflow(ctx, p); err != nil {
		return false, err
	}
	if err := s.b.writeAll(ctx, s.table, entryWrites(r.uuid, p.put)); err != nil {
		return false, err
	}
	_, err = s.b.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: recordItem(r.uuid),
		UpdateExpression:          aws.String("SET v = :v"),
		ConditionExpression:       aws.String("begins_with(v, :was)"),
		ExpressionAttributeValues: item{":v": bytesAttr(p.value.encode()), ":was": bytesAttr(r.value.head())},
	})
	if conditionFailed(err) {
		// The condition may have failed because this request was sent twice.
		now, err := s.readItem(ctx, r.uuid)
		if err != nil || now == nil || now.value.tag != p.tag {
			s.b.cleaner.add(garbage{table: s.table, keys: p.rollbackKeys(), note: p.noteKey()})
			return false, err
		}
	} else if err != nil {
		return false, s.b.wrapError(ctx, err, s.table)
	}
	s.snapshots.forget(r.uuid)
	s.b.cleaner.add(garbage{table: s.table, keys: p.obsoleteKeys(p.base), note: p.noteKey()})
	return true, nil
}

// sameEntries compares sets. An array that was there before its index may have tens of thousands of elements.
func sameEntries(a, b []entry) bool {
	if len(a) != len(b) {
		return false
	}
	has := make(map[entry]bool, len(b))
	for _, e := range b {
		has[e] = true
	}
	return !slices.ContainsFunc(a, func(e entry) bool { return !has[e] })
}
