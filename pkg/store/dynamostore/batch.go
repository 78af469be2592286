package dynamostore

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"
)

// DynamoDB's limits of one batch, and how many requests one call has under way.
const (
	batchWrites = 25
	batchReads  = 100
	abreast     = 16
)

// writeAll puts and deletes items. Each is an act of its own; when one fails,
// others may have been made.
func (b *Backend) writeAll(ctx context.Context, table string, writes []types.WriteRequest) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(abreast)
	for piece := range slices.Chunk(writes, batchWrites) {
		group.Go(func() error { return b.writeBatch(ctx, table, piece) })
	}
	return group.Wait()
}

func (b *Backend) writeBatch(ctx context.Context, table string, writes []types.WriteRequest) error {
	for attempt := 1; ; attempt++ {
		out, err := b.client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{
			RequestItems: map[string][]types.WriteRequest{table: writes},
		})
		if err != nil {
			return b.fault(ctx, err, table)
		}
		rest := out.UnprocessedItems[table]
		if len(rest) == 0 {
			return nil
		}
		if len(rest) < len(writes) {
			attempt = 1
		}
		writes = rest
		if err := b.again(ctx, attempt, table); err != nil {
			return err
		}
	}
}

// readAll gets items by their keys, all different, with strong reads, in no
// order. Those that don't exist are left out. attributes are those that are
// wanted, comma-separated; "" is all.
func (b *Backend) readAll(ctx context.Context, table string, keys []item, attributes string) ([]item, error) {
	var found []item
	for piece := range slices.Chunk(keys, batchReads) {
		for attempt := 1; len(piece) > 0; attempt++ {
			ask := types.KeysAndAttributes{Keys: piece, ConsistentRead: yes}
			if attributes != "" {
				ask.ProjectionExpression = &attributes
			}
			out, err := b.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
				RequestItems: map[string]types.KeysAndAttributes{table: ask},
			})
			if err != nil {
				return nil, b.fault(ctx, err, table)
			}
			found = append(found, out.Responses[table]...)
			rest := out.UnprocessedKeys[table].Keys
			if len(rest) == 0 {
				break
			}
			if len(rest) < len(piece) {
				attempt = 0 // the reply was full, or half of it was throttled
			} else if err := b.again(ctx, attempt, table); err != nil {
				return nil, err
			}
			piece = rest
		}
	}
	return found, nil
}

// again waits before what was left undone is asked once more, unless that was
// in vain too often.
func (b *Backend) again(ctx context.Context, attempt int, table string) error {
	if attempt >= attempts {
		return b.away(nil, "%s throttles the table %s", b.where, table)
	}
	return b.pause(ctx, attempt)
}
