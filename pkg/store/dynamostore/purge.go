package dynamostore

import (
	"context"
	"encoding/binary"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"belfry/pkg/store/driver"
)

// Purge is part of driver.Store. It also tidies up what crashed writes left
// outside of records.
func (s *store) Purge(ctx context.Context, before uint64, limit int) (removed int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, canceled(err)
	}
	if err := driver.CheckLimit(limit); err != nil {
		return 0, err
	}
	if err := s.tidy(ctx); err != nil {
		return 0, err
	}
	sp := &span{index: deadIndex, high: binary.BigEndian.AppendUint64(nil, before)}
	sp.high = driver.AppendPart(nil, sp.high)
	readers := s.readers(sp, allShards(), batchReads)
	for removed < limit {
		places, more, err := take(ctx, readers, min(limit-removed, batchReads))
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

// purge removes the tombstones at some places that hold no event.
func (s *store) purge(ctx context.Context, places []found) (removed int, err error) {
	records, err := s.recordsAt(ctx, places)
	if err != nil {
		return 0, err
	}
	for _, f := range places {
		r := records[f.uuid]
		if !s.counts(deadIndex, f, r) || len(r.events) > 0 {
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
			return removed, s.b.fault(ctx, err, s.table)
		}
		removed++
		var useless []item
		for _, e := range r.entries {
			useless = append(useless, e.itemKey(r.uuid))
		}
		s.b.broom.add(litter{table: s.table, keys: useless})
	}
	return removed, nil
}
