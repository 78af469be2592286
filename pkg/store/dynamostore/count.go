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

// DynamoDB counts by reading: counting the live records reads all their entries.
// The longer a count takes, the less often it is repeated.
const (
	recountFactor = 200 // interval as a multiple of the time a count took
	countTimeout  = 10 * time.Minute
)

// counter holds the latest count of the live records.
type counter struct {
	mu      sync.Mutex
	records int64
	known   bool
	next    time.Time     // time of the next count
	running chan struct{} // closed when the count in progress ends; nil without one
	err     error         // of the last count
}

// Count implements driver.Store. The number of records may be outdated, the longer
// the more there are; instead of events it counts the records with pending events.
func (s *store) Count(ctx context.Context) (records, pending int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, errCanceled(err)
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

// countRecords returns the latest count if it is recent enough. Otherwise it waits
// for a new one; when ctx ends first it returns the outdated one if there is one.
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
		return 0, errCanceled(ctx.Err())
	default:
		return 0, c.err
	}
}

func (s *store) recount() {
	ctx, cancel := context.WithTimeout(s.b.ctx, countTimeout)
	defer cancel()
	began := time.Now()
	records, err := s.countShards(ctx, func(shard int) *dynamodb.QueryInput {
		return &dynamodb.QueryInput{
			ConsistentRead: trueValue, KeyConditionExpression: aws.String("k = :k"),
			ExpressionAttributeValues: item{":k": textAttr(entryPartition(liveIndex, shard))},
		}
	})
	if ctx.Err() != nil {
		err = s.b.unavailable(errors.Join(err, ctx.Err()), "counting the table %s took longer than %s", s.table,
			countTimeout)
	}
	c := &s.count
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.running)
	c.running, c.err = nil, err
	if c.known = err == nil; c.known {
		c.records, c.next = records, time.Now().Add(recountFactor*time.Since(began))
	}
}

// countShards adds up the counts of a query for each shard.
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
					return s.b.wrapError(gctx, err, s.table)
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
