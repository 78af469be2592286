package dynamostore

import (
	"context"
	"encoding/binary"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"belfry/pkg/store/driver"
)

// Purge implements driver.Store. It also removes the overflow that crashed writes
// left.
func (s *store) Purge(ctx context.Context, before uint64, limit int) (removed int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, errCanceled(err)
	}
	if err := driver.CheckLimit(limit); err != nil {
		return 0, err
	}
	if err := s.removeOrphans(ctx); err != nil {
		return 0, err
	}
	sp := &span{index: deadIndex, high: binary.BigEndian.AppendUint64(nil, before)}
	sp.high = driver.AppendPart(nil, sp.high)
	readers := s.readers(sp, allShards(), batchReads)
	for removed < limit {
		places, more, err := mergeReaders(ctx, readers, min(limit-removed, batchReads))
		if err != nil {
			return removed, err
		}
		n, err := s.purge(ctx, places)
		removed += n
		if err != nil || !more {
			return removed, err
		}
	}
	return removed, nil
}

// purge removes the tombstones without pending events at the given positions.
func (s *store) purge(ctx context.Context, places []entryPosition) (removed int, err error) {
	records, err := s.recordsAt(ctx, places)
	if err != nil {
		return 0, err
	}
	for _, f := range places {
		r := records[f.uuid]
		if !s.matchesEntry(deadIndex, f, r) {
			continue
		}
		_, err := s.b.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
			TableName: &s.table, Key: recordItem(r.uuid),
			ConditionExpression:       aws.String("attribute_exists(d) AND r = :r AND attribute_not_exists(q)"),
			ExpressionAttributeValues: item{":r": numberAttr(r.revision)},
		})
		if conditionFailed(err) {
			continue
		}
		if err != nil {
			return removed, s.b.wrapError(ctx, err, s.table)
		}
		removed++
		var obsolete []item
		for _, e := range r.entries {
			obsolete = append(obsolete, e.itemKey(r.uuid))
		}
		s.b.cleaner.add(garbage{table: s.table, keys: obsolete})
	}
	return removed, nil
}
