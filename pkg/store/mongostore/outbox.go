package mongostore

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// Pending implements driver.Store. Events are in the order of the UUIDs of their
// records.
func (s *store) Pending(ctx context.Context, after []byte,
	limit int) (events []driver.Pending, next []byte, err error) {
	if err := driver.CheckLimit(limit); err != nil {
		return nil, nil, err
	}
	uuid, revision := splitPending(after)
	limited, cancel := s.b.withTimeout(ctx)
	defer cancel()
	docs, err := s.read(limited, bson.D{{Key: pendingField, Value: bson.D{{Key: "$gte", Value: uuid}}}},
		bson.D{{Key: eventsField, Value: 1}}, bson.D{{Key: pendingField, Value: 1}}, limit+1)
	if err != nil {
		return nil, nil, s.wrapError(ctx, "search", err)
	}
	for _, doc := range docs {
		waiting, err := s.decodeEvents(doc)
		if err != nil {
			return nil, nil, err
		}
		for _, e := range waiting {
			if e.UUID == uuid && e.Revision <= revision {
				continue
			}
			if len(events) == limit {
				return events, next, nil
			}
			events = append(events, e)
			next = []byte(e.UUID + " " + revisionText(e.Revision))
		}
	}
	if len(docs) <= limit {
		next = nil
	}
	return events, next, nil
}

// splitPending splits a position among events. nil is before all events.
func splitPending(after []byte) (uuid string, revision uint64) {
	uuid, digits, _ := strings.Cut(text(after), " ")
	revision, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		revision = 0
	}
	return uuid, revision
}

// Clear implements driver.Store. When all pending events of a record are cleared, which
// is the case except for records that are written continuously, one update clears many
// records. It does not wait for a majority, and the MongoDB driver does not repeat
// multi-document updates: events that reappear are published again.
func (s *store) Clear(ctx context.Context, events []driver.Pending) error {
	if err := ctx.Err(); err != nil {
		return errCanceled(err)
	}
	records := byRecord(events)
	for uuids := range slices.Chunk(slices.Sorted(maps.Keys(records)), clearRecords) {
		err := s.clear(ctx, records, uuids)
		if rolledBack(err) {
			err = s.clearEach(ctx, records, uuids)
		}
		if err != nil {
			return s.wrapError(ctx, "write", err)
		}
	}
	return nil
}

func (s *store) clear(ctx context.Context, records map[string]published, uuids []string) error {
	cleared, err := s.clearAll(ctx, records, uuids)
	if err == nil && cleared < len(uuids) {
		err = s.clearRest(ctx, records, uuids)
	}
	return err
}

// clearEach clears the events of one record after the other. A server on PostgreSQL locks
// the records of an update in the order in which it finds them, which no option
// determines. So two processes that clear events of the same records can deadlock, and
// the server fails one of their updates. An update of one record waits for one lock and
// can't be a part of a deadlock.
func (s *store) clearEach(ctx context.Context, records map[string]published, uuids []string) error {
	for one := range slices.Chunk(uuids, 1) {
		if err := retryRolledBack(ctx, func() error { return s.clear(ctx, records, one) }); err != nil {
			return err
		}
	}
	return nil
}

// clearRecords is the number of records that one update clears. Each has a clause in
// the filter of the update.
const clearRecords = 200

// clearAll clears events of records that have no other pending events. The index of
// _id finds the records; the clause of a record has the IDs of its events.
func (s *store) clearAll(ctx context.Context, records map[string]published, uuids []string) (cleared int, err error) {
	clauses := make(bson.A, len(uuids))
	for i, uuid := range uuids {
		clause := bson.D{{Key: countField, Value: len(records[uuid])}}
		for revision, id := range records[uuid] {
			clause = append(clause, bson.E{Key: eventPath(revision) + "." + eventIDField, Value: id})
		}
		clauses[i] = clause
	}
	limited, cancel := s.b.withTimeout(ctx)
	defer cancel()
	result, err := s.writeFast.UpdateMany(limited,
		bson.D{{Key: idField, Value: bson.D{{Key: "$in", Value: uuids}}}, {Key: "$or", Value: clauses}}, clearUpdate())
	if err != nil {
		return 0, err
	}
	return int(result.MatchedCount), nil
}

// clearRest clears events one by one in records that have other pending events.
func (s *store) clearRest(ctx context.Context, records map[string]published, uuids []string) error {
	limited, cancel := s.b.withTimeout(ctx)
	defer cancel()
	left, err := s.readLatest.Find(limited,
		bson.D{{Key: idField, Value: bson.D{{Key: "$in", Value: uuids}}}, {Key: pendingField, Value: exists(true)}},
		options.Find().SetProjection(bson.D{{Key: idField, Value: 1}}).SetBatchSize(batch(len(uuids))))
	docs, err := all(limited, left, err)
	if err != nil {
		return err
	}
	found := make([]string, len(docs))
	for i, doc := range docs {
		var ok bool
		if found[i], ok = doc.Lookup(idField).StringValueOK(); !ok {
			return s.errForeign(doc)
		}
	}
	var changes []mongo.WriteModel
	for _, uuid := range slices.Sorted(slices.Values(found)) {
		for revision := range records[uuid] {
			changes = append(changes, clearOne(uuid, revision), clearLast(uuid, revision))
		}
	}
	return s.bulkWrite(ctx, s.writeFast, changes)
}

// bulkChanges is the number of changes in a command. MongoDB allows many more, but
// FerretDB uses a database connection for each until the command ends.
const bulkChanges = 50

// bulkWrite makes changes in order, which must be that of UUIDs: a server on PostgreSQL makes
// those of a command in one transaction, and no two of them wait for each other. They
// must be changes that can be repeated.
func (s *store) bulkWrite(ctx context.Context, in *mongo.Collection, changes []mongo.WriteModel) error {
	for part := range slices.Chunk(changes, bulkChanges) {
		err := retryRolledBack(ctx, func() error {
			limited, cancel := s.b.withTimeout(ctx)
			defer cancel()
			_, err := in.BulkWrite(limited, part)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// published has the IDs of the events of a record by revision.
type published map[uint64]string

// byRecord groups events by the UUIDs of their records.
func byRecord(events []driver.Pending) map[string]published {
	records := make(map[string]published)
	for _, e := range events {
		if records[e.UUID] == nil {
			records[e.UUID] = make(published)
		}
		records[e.UUID][e.Revision] = e.ID
	}
	return records
}

// clearUpdate returns the update that removes all pending events of a record.
func clearUpdate() bson.D {
	return bson.D{{Key: "$unset", Value: bson.D{
		{Key: eventsField, Value: ""}, {Key: countField, Value: ""}, {Key: pendingField, Value: ""},
	}}}
}

// clearOne clears an event of a record that has others.
func clearOne(uuid string, revision uint64) mongo.WriteModel {
	return mongo.NewUpdateOneModel().
		SetFilter(bson.D{
			{Key: idField, Value: uuid},
			{Key: countField, Value: bson.D{{Key: "$gt", Value: 1}}},
			{Key: eventPath(revision), Value: exists(true)},
		}).
		SetUpdate(bson.D{
			{Key: "$unset", Value: bson.D{{Key: eventPath(revision), Value: ""}}},
			{Key: "$inc", Value: bson.D{{Key: countField, Value: -1}}},
		})
}

// clearLast clears the only pending event of a record.
func clearLast(uuid string, revision uint64) mongo.WriteModel {
	return mongo.NewUpdateOneModel().SetUpdate(clearUpdate()).SetFilter(bson.D{
		{Key: idField, Value: uuid}, {Key: countField, Value: 1}, {Key: eventPath(revision), Value: exists(true)},
	})
}

// Count implements driver.Store. Records are counted by the collection metadata of the
// server, which may be inexact after a crash of the server.
func (s *store) Count(ctx context.Context) (records, pending int64, err error) {
	limited, cancel := s.b.withTimeout(ctx)
	defer cancel()
	documents, err := s.collection.EstimatedDocumentCount(limited)
	if err != nil {
		return 0, 0, s.wrapError(ctx, "count", err)
	}
	tombstones, err := s.sumOver(limited, tombstoneField, 1)
	if err != nil {
		return 0, 0, s.wrapError(ctx, "count", err)
	}
	pending, err = s.sumOver(limited, pendingField, "$"+countField)
	return max(documents-tombstones, 0), pending, s.wrapError(ctx, "count", err)
}

// sumOver returns the sum of a value over the documents that have a field.
func (s *store) sumOver(ctx context.Context, having string, value any) (int64, error) {
	cursor, err := s.collection.Aggregate(ctx, mongo.Pipeline{
		{{Key: "$match", Value: bson.D{{Key: having, Value: bson.D{{Key: "$gte", Value: ""}}}}}},
		{{Key: "$group",
			Value: bson.D{{Key: idField, Value: nil}, {Key: countField, Value: bson.D{{Key: "$sum", Value: value}}}}}},
	})
	docs, err := all(ctx, cursor, err)
	if err != nil || len(docs) == 0 {
		return 0, err
	}
	n, ok := docs[0].Lookup(countField).AsInt64OK()
	if !ok {
		return 0, errs.New(errs.Internal, "%s returned a count of the collection %s that is not a number", s.b.address,
			s.collection.Name())
	}
	return n, nil
}
