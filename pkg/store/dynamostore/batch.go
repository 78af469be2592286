package dynamostore

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"
)

// DynamoDB's batch limits, and the maximum number of requests of one call in
// flight.
const (
	batchWrites = 25
	batchReads  = 100
	maxInFlight = 16
)

// writeAll puts and deletes items. It is not atomic: when it fails, some of the
// writes may have been made.
func (b *Backend) writeAll(ctx context.Context, table string, writes []types.WriteRequest) error {
	if 0 < len(writes) && len(writes) <= batchWrites {
		return b.writeBatch(ctx, table, writes)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxInFlight)
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
			return b.wrapError(ctx, err, table)
		}
		rest := out.UnprocessedItems[table]
		if len(rest) == 0 {
			return nil
		}
		if len(rest) < len(writes) {
			attempt = 1
		}
		writes = rest
		if err := b.backoffUnprocessed(ctx, attempt, table); err != nil {
			return err
		}
	}
}

// readAll reads the items with the given distinct keys, strongly, and returns them
// in no particular order, without those that don't exist. attributes is the
// comma-separated projection; "" is all.
func (b *Backend) readAll(ctx context.Context, table string, keys []item, attributes string) ([]item, error) {
	var found []item
	for piece := range slices.Chunk(keys, batchReads) {
		for attempt := 1; len(piece) > 0; attempt++ {
			ask := types.KeysAndAttributes{Keys: piece, ConsistentRead: trueValue}
			if attributes != "" {
				ask.ProjectionExpression = &attributes
			}
			out, err := b.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
				RequestItems: map[string]types.KeysAndAttributes{table: ask},
			})
			if err != nil {
				return nil, b.wrapError(ctx, err, table)
			}
			found = append(found, out.Responses[table]...)
			rest := out.UnprocessedKeys[table].Keys
			if len(rest) == 0 {
				break
			}
			if len(rest) < len(piece) {
				attempt = 0 // the reply was full, or partly throttled
			} else if err := b.backoffUnprocessed(ctx, attempt, table); err != nil {
				return nil, err
			}
			piece = rest
		}
	}
	return found, nil
}

// backoffUnprocessed waits before the unprocessed items of a batch are sent again.
// It reports errs.Unavailable after the last attempt.
func (b *Backend) backoffUnprocessed(ctx context.Context, attempt int, table string) error {
	if attempt >= maxAttempts {
		return b.unavailable(nil, "%s throttles the table %s", b.where, table)
	}
	return waitToRetry(ctx, attempt)
}
