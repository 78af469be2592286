package dynamostore

import (
	"bytes"
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"belfry/pkg/store/driver"
)

// fill computes the index entries of all live records.
func (s *store) fill(ctx context.Context, keys func(body []byte) []driver.Key) error {
	readers := s.readers(&span{index: liveIndex}, allShards(), batchReads)
	for {
		places, more, err := mergeReaders(ctx, readers, batchReads)
		if err != nil {
			return err
		}
		records, err := s.recordsAt(ctx, places)
		if err != nil {
			return err
		}
		group, gctx := errgroup.WithContext(ctx)
		group.SetLimit(maxInFlight)
		for _, r := range records {
			group.Go(func() error { return s.refill(gctx, r, keys) })
		}
		if err := group.Wait(); err != nil || !more {
			return err
		}
	}
}

// refill updates the keys of a record. It changes neither the revision nor the
// events, and starts over after a concurrent write.
func (s *store) refill(ctx context.Context, r *record, keys func([]byte) []driver.Key) error {
	for range maxRetries {
		if r == nil || r.deleted {
			return nil
		}
		done, err := s.refillOnce(ctx, r, keys(bytes.Clone(r.body)))
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
	p := &plan{w: w, base: s.snapshotOf(r), tag: newTag(s.b.now())}
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
