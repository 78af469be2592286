package dynamostore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"belfry/pkg/store/driver"
)

// clearAtOnce is how many events of one record one request takes out: an
// expression has at most 300 operators.
const clearAtOnce = 64

// Clear is part of driver.Store. DynamoDB has no batch of updates: it takes a
// request for each record, several at a time.
func (s *store) Clear(ctx context.Context, events []driver.Pending) error {
	if err := ctx.Err(); err != nil {
		return canceled(err)
	}
	byRecord := make(map[string][]uint64)
	for _, e := range events {
		if err := s.ready(ctx, e.UUID); err != nil {
			return err
		}
		byRecord[e.UUID] = append(byRecord[e.UUID], e.Revision)
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(2 * abreast)
	for uuid, revisions := range byRecord {
		group.Go(func() error {
			slices.Sort(revisions)
			return s.clearRecord(gctx, uuid, slices.Compact(revisions))
		})
	}
	return group.Wait()
}

func (s *store) clearRecord(ctx context.Context, uuid string, revisions []uint64) error {
	if len(revisions) <= clearAtOnce {
		if cleared, err := s.clearLast(ctx, uuid, revisions); err != nil || cleared {
			return err
		}
	}
	r, err := s.readItem(ctx, uuid)
	if err != nil || r == nil {
		return err
	}
	for piece := range slices.Chunk(revisions, clearAtOnce) {
		there := make(map[uint64]cell)
		for _, revision := range piece {
			if c, ok := r.events[revision]; ok {
				there[revision] = c
			}
		}
		if err := s.takeOut(ctx, uuid, there); err != nil {
			return err
		}
	}
	return nil
}

// clearLast takes events out if they are all that wait in the record and all
// inside of it, as most often they are.
func (s *store) clearLast(ctx context.Context, uuid string, revisions []uint64) (bool, error) {
	x := newRemoval()
	condition := "size(q) = :n"
	for _, revision := range revisions {
		condition += " AND attribute_exists(" + x.event(revision, false) + ")"
	}
	x.values[":n"] = numberAttr(uint64(len(revisions)))
	in := x.input(s.table, uuid, ", p")
	in.ConditionExpression = &condition
	_, err := s.b.client.UpdateItem(ctx, in)
	if conditionFailed(err) {
		return false, nil
	}
	return err == nil, s.b.fault(ctx, err, s.table)
}

// takeOut takes some events of a record out. What lies outside goes first: an
// event whose pieces are gone counts as cleared, so nothing is left over.
func (s *store) takeOut(ctx context.Context, uuid string, events map[uint64]cell) error {
	if len(events) == 0 {
		return nil
	}
	x := newRemoval()
	var pieces []item
	for revision, c := range events {
		x.event(revision, c.outside())
		pieces = append(pieces, c.keys()...)
	}
	if err := s.b.writeAll(ctx, s.table, deletions(pieces)); err != nil {
		return err
	}
	in := x.input(s.table, uuid, "")
	in.ConditionExpression = aws.String("attribute_exists(k)")
	in.ReturnValues = types.ReturnValueUpdatedNew
	out, err := s.b.client.UpdateItem(ctx, in)
	switch {
	case conditionFailed(err):
		return nil // the record is gone, and its events with it
	case err != nil:
		return s.b.fault(ctx, err, s.table)
	case out.Attributes[attrWaiting] == nil:
		return s.unmark(ctx, uuid)
	default:
		return nil
	}
}

// removal is an update that takes events out of a record.
type removal struct {
	names   map[string]string
	values  item
	waiting *types.AttributeValueMemberNS
	remove  []string
}

func newRemoval() *removal {
	x := &removal{names: make(map[string]string), values: make(item), waiting: &types.AttributeValueMemberNS{}}
	x.values[":q"] = x.waiting
	return x
}

// event adds an event and returns what stands for its attribute.
func (x *removal) event(revision uint64, outside bool) string {
	name := fmt.Sprintf("#%d", len(x.remove))
	x.names[name] = eventAttr(revision, outside)
	x.remove = append(x.remove, name)
	x.waiting.Value = append(x.waiting.Value, fmt.Sprint(revision))
	return name
}

func (x *removal) input(table, uuid, also string) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName: &table, Key: recordItem(uuid),
		UpdateExpression:         aws.String("REMOVE " + strings.Join(x.remove, ", ") + also + " DELETE q :q"),
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
	}
}
