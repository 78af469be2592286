package dynamostore

import (
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// eventsPerRead is the number of events of a record that are read together.
const eventsPerRead = 32

// cursor is a position among pending events: after the event of a revision of a
// record; the next record of the shard follows.
type cursor struct {
	shard    int
	uuid     string
	revision uint64
}

func (c cursor) encode() []byte {
	b := append([]byte{byte(c.shard)}, binary.BigEndian.AppendUint64(nil, c.revision)...) //nolint:gosec // small
	return append(b, c.uuid...)
}

func decodeCursor(b []byte) (c cursor, err error) {
	if b == nil {
		return c, nil
	}
	if len(b) < 9 || int(b[0]) >= shards {
		return c, errs.New(errs.Internal, "dynamostore: a position among pending events that Pending did not return")
	}
	return cursor{shard: int(b[0]), revision: binary.BigEndian.Uint64(b[1:]), uuid: string(b[9:])}, nil
}

// Pending implements driver.Store. The index that finds records with pending events
// may lag a little; the records themselves are read strongly.
func (s *store) Pending(ctx context.Context, after []byte,
	limit int) (events []driver.Pending, next []byte, err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, errCanceled(err)
	}
	if err := driver.CheckLimit(limit); err != nil {
		return nil, nil, err
	}
	at, err := decodeCursor(after)
	if err != nil {
		return nil, nil, err
	}
	size := 0
	for at.shard < shards {
		uuids, more, err := s.pendingRecords(ctx, at, min(limit-len(events)+1, batchReads))
		if err != nil {
			return nil, nil, err
		}
		records, err := s.readManyWith(ctx, uuids, "", s.loadHeads)
		if err != nil {
			return nil, nil, err
		}
		for _, uuid := range uuids {
			from := uint64(0)
			if uuid == at.uuid {
				from = at.revision
			}
			got, all, err := s.eventsOf(ctx, records[uuid], from, limit-len(events)+1)
			if err != nil {
				return nil, nil, err
			}
			for _, e := range got {
				if len(events) == limit || size >= s.b.pageSize {
					return events, at.encode(), nil
				}
				events = append(events, e)
				size += len(e.Payload)
				at.uuid, at.revision = uuid, e.Revision
			}
			if !all {
				return events, at.encode(), nil
			}
			at.uuid, at.revision = uuid, math.MaxUint64
		}
		if !more {
			at = cursor{shard: at.shard + 1}
		}
	}
	return events, nil, nil
}

// pendingRecords returns the UUIDs of records of a shard with pending events, from a
// cursor on, and whether more may follow.
func (s *store) pendingRecords(ctx context.Context, at cursor, limit int) (uuids []string, more bool, err error) {
	condition := "p = :p AND k >= :k"
	if at.revision == math.MaxUint64 {
		condition = "p = :p AND k > :k"
	}
	out, err := s.b.client.Query(ctx, &dynamodb.QueryInput{
		TableName: &s.table, IndexName: aws.String(pendingIndex), Limit: limit32(limit),
		KeyConditionExpression:    &condition,
		ExpressionAttributeValues: item{":p": numberAttr(uint64(at.shard)), ":k": textAttr(recordPartition(at.uuid))}, //nolint:gosec // small
	})
	if err != nil {
		return nil, false, s.b.wrapError(ctx, err, s.table)
	}
	for _, it := range out.Items {
		uuids = append(uuids, textOf(it[attrPartition])[2:])
	}
	return uuids, len(out.LastEvaluatedKey) > 0, nil
}

// eventsOf returns the next events of a record after a revision, and whether these
// are all. The caller may clear them, so the entries of their writes are written
// first.
func (s *store) eventsOf(ctx context.Context, r *record, from uint64,
	limit int) (events []driver.Pending, all bool, err error) {
	if r == nil {
		return nil, true, nil // purged in the meantime
	}
	if len(r.events) == 0 {
		return nil, true, s.unmark(ctx, r.uuid)
	}
	if err := s.confirmEntries(ctx, r); err != nil {
		return nil, false, err
	}
	revisions := r.pending()
	next, _ := slices.BinarySearch(revisions, from+1)
	revisions = revisions[next:]
	for size := 0; len(revisions) > 0; {
		if len(events) >= limit || size >= s.b.pageSize {
			return events, false, nil
		}
		n := min(len(revisions), limit-len(events), eventsPerRead)
		got, err := s.readEvents(ctx, r, revisions[:n])
		if err != nil {
			return nil, false, err
		}
		for _, e := range got {
			size += len(e.Payload)
		}
		events, revisions = append(events, got...), revisions[n:]
	}
	return events, true, nil
}

// readEvents returns events of a record, without those whose pieces an interrupted
// Clear has removed.
func (s *store) readEvents(ctx context.Context, r *record, revisions []uint64) ([]driver.Pending, error) {
	var cells []cell
	for _, revision := range revisions {
		if c := r.events[revision]; c.isOverflow() {
			cells = append(cells, c)
		}
	}
	overflow, err := s.b.fetch(ctx, s.table, cells)
	if err != nil {
		return nil, err
	}
	events := make([]driver.Pending, 0, len(revisions))
	for _, revision := range revisions {
		c := r.events[revision]
		packed, there := c.data, true
		if c.isOverflow() {
			packed, there = overflow[c.id()]
		}
		if !there {
			if err := s.removeEvents(ctx, r.uuid, map[uint64]cell{revision: c}); err != nil {
				return nil, err
			}
			continue
		}
		e, err := unpackEvent(packed)
		if err != nil {
			return nil, errFormat(s.table, "an event of the object "+r.uuid, err)
		}
		events = append(events, driver.Pending{Event: e, UUID: r.uuid, Revision: revision})
	}
	return events, nil
}

func unpackEvent(packed []byte) (driver.Event, error) {
	plain, err := unpack(packed)
	if err != nil {
		return driver.Event{}, err
	}
	return decodeEvent(plain)
}

// confirmEntries writes the entries of those writes of a record that are not known
// to be indexed.
func (s *store) confirmEntries(ctx context.Context, r *record) error {
	unconfirmed := s.unconfirmed(r)
	if len(unconfirmed) == 0 {
		return nil
	}
	var put []entry
	for _, e := range r.entries {
		if unconfirmed[e.tag] {
			put = append(put, e)
		}
	}
	if err := s.b.writeAll(ctx, s.table, entryWrites(r.uuid, put)); err != nil {
		return err
	}
	tags := make([]tag, 0, len(unconfirmed))
	for t := range unconfirmed {
		tags = append(tags, t)
	}
	s.indexedWrites.add(tags...)
	return nil
}

// unmark removes a record without pending events from the index "pending".
func (s *store) unmark(ctx context.Context, uuid string) error {
	_, err := s.b.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: recordItem(uuid), UpdateExpression: aws.String("REMOVE p"),
		ConditionExpression: aws.String("attribute_exists(k) AND attribute_not_exists(q)"),
		ReturnValues:        types.ReturnValueNone,
	})
	if conditionFailed(err) {
		return nil
	}
	return s.b.wrapError(ctx, err, s.table)
}
