package dynamostore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"
)

// DynamoDB counts by reading: a count of the live records reads all their
// entries. So a count that took long is repeated rarely.
const (
	countAgain = 200              // times as long as it took
	countTime  = 10 * time.Minute // at most
)

// counter holds the latest count of the live records.
type counter struct {
	mu      sync.Mutex
	records int64
	known   bool
	next    time.Time     // from when on it is worth counting anew
	running chan struct{} // closed when the count that runs has ended; nil when none does
	err     error         // of the last one
}

// Count is part of driver.Store. The records are those of a moment that is the
// longer ago the more there are; of the events it counts the records in which
// some wait.
func (s *store) Count(ctx context.Context) (records, pending int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, canceled(err)
	}
	if records, err = s.countRecords(ctx); err != nil {
		return 0, 0, err
	}
	pending, err = s.countShards(ctx, func(shard int) *dynamodb.QueryInput {
		return &dynamodb.QueryInput{
			IndexName: aws.String(pendingIndex), KeyConditionExpression: aws.String("p = :k"),
			ExpressionAttributeValues: item{":k": numberAttr(uint64(shard))}, //nolint:gosec // small
		}
	})
	return records, pending, err
}

// countRecords waits for a count, unless there is one that is young enough or
// ctx ends and there is an older one.
func (s *store) countRecords(ctx context.Context) (int64, error) {
	c := &s.count
	c.mu.Lock()
	if c.known && time.Now().Before(c.next) {
		defer c.mu.Unlock()
		return c.records, nil
	}
	if c.running == nil {
		c.running = make(chan struct{})
		s.b.tasks.Go(s.recount)
	}
	running := c.running
	c.mu.Unlock()
	select {
	case <-running:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.known:
		return c.records, nil
	case ctx.Err() != nil:
		return 0, canceled(ctx.Err())
	default:
		return 0, c.err
	}
}

func (s *store) recount() {
	ctx, cancel := context.WithTimeout(s.b.life, countTime)
	defer cancel()
	began := time.Now()
	records, err := s.countShards(ctx, func(shard int) *dynamodb.QueryInput {
		return &dynamodb.QueryInput{
			ConsistentRead: yes, KeyConditionExpression: aws.String("k = :k"),
			ExpressionAttributeValues: item{":k": textAttr(entryPartition(liveIndex, shard))},
		}
	})
	if ctx.Err() != nil {
		err = s.b.away(errors.Join(err, ctx.Err()), "counting the table %s took longer than %s", s.table, countTime)
	}
	c := &s.count
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.running)
	c.running, c.err = nil, err
	if c.known = err == nil; c.known {
		c.records, c.next = records, time.Now().Add(countAgain*time.Since(began))
	}
}

// countShards adds up what a query for each shard counts.
func (s *store) countShards(ctx context.Context, query func(shard int) *dynamodb.QueryInput) (total int64, err error) {
	var counts [shards]int64
	group, gctx := errgroup.WithContext(ctx)
	for _, shard := range allShards() {
		group.Go(func() error {
			in := query(shard)
			in.TableName, in.Select = &s.table, types.SelectCount
			for {
				out, err := s.b.client.Query(gctx, in)
				if err != nil {
					return s.b.fault(gctx, err, s.table)
				}
				counts[shard] += int64(out.Count)
				if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
					return nil
				}
			}
		})
	}
	err = group.Wait()
	for _, n := range counts {
		total += n
	}
	return total, err
}
