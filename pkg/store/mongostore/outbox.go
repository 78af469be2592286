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

// Pending is part of driver.Store. Events come in the order of their records'
// uuids.
func (s *store) Pending(ctx context.Context, after []byte, limit int) (events []driver.Pending, next []byte, err error) {
	if err := driver.CheckLimit(limit); err != nil {
		return nil, nil, err
	}
	uuid, revision := splitPending(after)
	limited, cancel := s.b.limited(ctx)
	defer cancel()
	docs, err := s.read(limited, bson.D{{Key: pendingField, Value: bson.D{{Key: "$gte", Value: uuid}}}},
		bson.D{{Key: eventsField, Value: 1}}, bson.D{{Key: pendingField, Value: 1}}, limit+1)
	if err != nil {
		return nil, nil, s.fail(ctx, "search", err)
	}
	for _, doc := range docs {
		waiting, err := s.eventsOf(doc)
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
			next = []byte(e.UUID + " " + digits(e.Revision))
		}
	}
	if len(docs) <= limit {
		next = nil
	}
	return events, next, nil
}

// splitPending takes a place among events apart. nil is before all.
func splitPending(after []byte) (uuid string, revision uint64) {
	uuid, digits, _ := strings.Cut(text(after), " ")
	revision, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		revision = 0
	}
	return uuid, revision
}

// Clear is part of driver.Store. Where all that waits in a record is cleared,
// which is so but for records that are written over and over, one update does
// it for many records. It waits for no majority, and the driver repeats no
// update of many: events whose clearing was lost are published again.
func (s *store) Clear(ctx context.Context, events []driver.Pending) error {
	if err := ctx.Err(); err != nil {
		return canceled(err)
	}
	records := byRecord(events)
	for uuids := range slices.Chunk(slices.Sorted(maps.Keys(records)), clearRecords) {
		cleared, err := s.clearAll(ctx, records, uuids)
		if err == nil && cleared < len(uuids) {
			err = s.clearRest(ctx, records, uuids)
		}
		if err != nil {
			return s.fail(ctx, "write", err)
		}
	}
	return nil
}

// clearRecords is how many records one update clears. Each has a clause of the
// update's filter.
const clearRecords = 200

// clearAll clears events of records in which nothing else waits. The index of
// _id finds the records; a clause knows its own by the ids of its events.
func (s *store) clearAll(ctx context.Context, records map[string]published, uuids []string) (cleared int, err error) {
	clauses := make(bson.A, len(uuids))
	for i, uuid := range uuids {
		clause := bson.D{{Key: countField, Value: len(records[uuid])}}
		for revision, id := range records[uuid] {
			clause = append(clause, bson.E{Key: eventPath(revision) + "." + eventIDField, Value: id})
		}
		clauses[i] = clause
	}
	limited, cancel := s.b.limited(ctx)
	defer cancel()
	result, err := s.relaxed.UpdateMany(limited,
		bson.D{{Key: idField, Value: bson.D{{Key: "$in", Value: uuids}}}, {Key: "$or", Value: clauses}}, clearing())
	if err != nil {
		return 0, err
	}
	return int(result.MatchedCount), nil
}

// clearRest clears events one by one in those records where others wait too.
func (s *store) clearRest(ctx context.Context, records map[string]published, uuids []string) error {
	limited, cancel := s.b.limited(ctx)
	defer cancel()
	left, err := s.newest.Find(limited, bson.D{{Key: idField, Value: bson.D{{Key: "$in", Value: uuids}}}, {Key: pendingField, Value: exists(true)}},
		options.Find().SetProjection(bson.D{{Key: idField, Value: 1}}).SetBatchSize(batch(len(uuids))))
	docs, err := all(limited, left, err)
	if err != nil {
		return err
	}
	var changes []mongo.WriteModel
	for _, doc := range docs {
		uuid, ok := doc.Lookup(idField).StringValueOK()
		if !ok {
			return s.damaged(doc)
		}
		for revision := range records[uuid] {
			changes = append(changes, clearOne(uuid, revision), clearLast(uuid, revision))
		}
	}
	return s.bulk(ctx, s.relaxed, changes)
}

// bulkChanges is how many changes go in one command. MongoDB takes far more,
// FerretDB holds a connection to its database for each until the last is made.
const bulkChanges = 50

// bulk makes changes, one after the other.
func (s *store) bulk(ctx context.Context, in *mongo.Collection, changes []mongo.WriteModel) error {
	for part := range slices.Chunk(changes, bulkChanges) {
		limited, cancel := s.b.limited(ctx)
		_, err := in.BulkWrite(limited, part)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// published are the ids of a record's events by their revisions.
type published map[uint64]string

// byRecord gathers events by the uuids of their records.
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

// clearing takes everything that waits out of a record.
func clearing() bson.D {
	return bson.D{{Key: "$unset", Value: bson.D{
		{Key: eventsField, Value: ""}, {Key: countField, Value: ""}, {Key: pendingField, Value: ""},
	}}}
}

// clearOne clears an event of a record where others wait.
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

// clearLast clears an event of a record where it is the only one.
func clearLast(uuid string, revision uint64) mongo.WriteModel {
	return mongo.NewUpdateOneModel().SetUpdate(clearing()).SetFilter(bson.D{
		{Key: idField, Value: uuid}, {Key: countField, Value: 1}, {Key: eventPath(revision), Value: exists(true)},
	})
}

// Count is part of driver.Store. Records are counted by what the server keeps
// of a collection's size, which a crash may leave a little wrong.
func (s *store) Count(ctx context.Context) (records, pending int64, err error) {
	limited, cancel := s.b.limited(ctx)
	defer cancel()
	documents, err := s.collection.EstimatedDocumentCount(limited)
	if err != nil {
		return 0, 0, s.fail(ctx, "count", err)
	}
	tombstones, err := s.sum(limited, tombstoneField, 1)
	if err != nil {
		return 0, 0, s.fail(ctx, "count", err)
	}
	pending, err = s.sum(limited, pendingField, "$"+countField)
	return max(documents-tombstones, 0), pending, s.fail(ctx, "count", err)
}

// sum adds up a value of the documents that have a field.
func (s *store) sum(ctx context.Context, having string, value any) (int64, error) {
	cursor, err := s.collection.Aggregate(ctx, mongo.Pipeline{
		{{Key: "$match", Value: bson.D{{Key: having, Value: bson.D{{Key: "$gte", Value: ""}}}}}},
		{{Key: "$group", Value: bson.D{{Key: idField, Value: nil}, {Key: countField, Value: bson.D{{Key: "$sum", Value: value}}}}}},
	})
	docs, err := all(ctx, cursor, err)
	if err != nil || len(docs) == 0 {
		return 0, err
	}
	n, ok := docs[0].Lookup(countField).AsInt64OK()
	if !ok {
		return 0, errs.New(errs.Internal, "%s counts the collection %s to something that is no number", s.b.place, s.collection.Name())
	}
	return n, nil
}
