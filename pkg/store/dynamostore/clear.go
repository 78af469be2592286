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

// clearPerUpdate is the number of events of a record that one request removes: an
// expression has at most 300 operators.
const clearPerUpdate = 64

// Clear implements driver.Store. DynamoDB has no batch updates: each record takes a
// request, several are in flight.
func (s *store) Clear(ctx context.Context, events []driver.Pending) error {
	if err := ctx.Err(); err != nil {
		return errCanceled(err)
	}
	byRecord := make(map[string][]uint64)
	for _, e := range events {
		if err := s.checkUUID(ctx, e.UUID); err != nil {
			return err
		}
		byRecord[e.UUID] = append(byRecord[e.UUID], e.Revision)
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(2 * maxInFlight)
	for uuid, revisions := range byRecord {
		group.Go(func() error {
			slices.Sort(revisions)
			return s.clearRecord(gctx, uuid, slices.Compact(revisions))
		})
	}
	return group.Wait()
}

func (s *store) clearRecord(ctx context.Context, uuid string, revisions []uint64) error {
	var there item
	if len(revisions) <= clearPerUpdate {
		cleared, found, err := s.clearLast(ctx, uuid, revisions)
		if err != nil || cleared {
			return err
		}
		there = found
	}
	r, err := s.itemOf(ctx, uuid, there)
	if err != nil || r == nil {
		return err
	}
	for piece := range slices.Chunk(revisions, clearPerUpdate) {
		left := make(map[uint64]cell)
		for _, revision := range piece {
			if c, ok := r.events[revision]; ok {
				left[revision] = c
			}
		}
		if err := s.removeEvents(ctx, uuid, left); err != nil {
			return err
		}
	}
	return nil
}

// clearLast removes events if no others are pending in the record and none is in
// the overflow, which is the common case. Otherwise it returns the item, if the server
// does.
func (s *store) clearLast(ctx context.Context, uuid string, revisions []uint64) (cleared bool, there item, err error) {
	x := newClearUpdate()
	condition := "size(q) = :n"
	for _, revision := range revisions {
		condition += " AND attribute_exists(" + x.event(revision, false) + ")"
	}
	x.values[":n"] = numberAttr(uint64(len(revisions)))
	in := x.input(s.table, uuid, ", p")
	in.ConditionExpression = &condition
	in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	_, err = s.b.client.UpdateItem(ctx, in)
	if conditionFailed(err) {
		return false, conflictingItem(err), nil
	}
	return err == nil, nil, s.b.wrapError(ctx, err, s.table)
}

// removeEvents removes events of a record. Their overflow is removed first: an
// event without its pieces counts as cleared, so no piece is orphaned.
func (s *store) removeEvents(ctx context.Context, uuid string, events map[uint64]cell) error {
	if len(events) == 0 {
		return nil
	}
	x := newClearUpdate()
	var pieces []item
	for revision, c := range events {
		x.event(revision, c.isOverflow())
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
		return nil // the record was purged, and its events with it
	case err != nil:
		return s.b.wrapError(ctx, err, s.table)
	case out.Attributes[attrWaiting] == nil:
		return s.unmark(ctx, uuid)
	default:
		return nil
	}
}

// clearUpdate builds an update that removes events from a record.
type clearUpdate struct {
	names   map[string]string
	values  item
	waiting *types.AttributeValueMemberNS
	remove  []string
}

func newClearUpdate() *clearUpdate {
	x := &clearUpdate{names: make(map[string]string), values: make(item), waiting: &types.AttributeValueMemberNS{}}
	x.values[":q"] = x.waiting
	return x
}

// event adds an event and returns the placeholder of its attribute.
func (x *clearUpdate) event(revision uint64, overflow bool) string {
	name := fmt.Sprintf("#%d", len(x.remove))
	x.names[name] = eventAttr(revision, overflow)
	x.remove = append(x.remove, name)
	x.waiting.Value = append(x.waiting.Value, fmt.Sprint(revision))
	return name
}

func (x *clearUpdate) input(table, uuid, alsoRemove string) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName: &table, Key: recordItem(uuid),
		UpdateExpression:         aws.String("REMOVE " + strings.Join(x.remove, ", ") + alsoRemove + " DELETE q :q"),
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
	}
}
