package mongostore

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// Pending is part of driver.Store. Events come in the order of their records'
// uuids.
func (s *store) Pending(ctx context.Context, after []byte, limit int) (events []driver.Pending, next []byte, err error) {
	if err := checkLimit(limit); err != nil {
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
// it. It waits for no majority.
func (s *store) Clear(ctx context.Context, events []driver.Pending) error {
	if err := ctx.Err(); err != nil {
		return canceled(err)
	}
	records := byRecord(events)
	var whole, single []mongo.WriteModel
	for uuid, revisions := range records {
		whole = append(whole, clearAll(uuid, revisions))
	}
	cleared, err := s.bulk(ctx, s.relaxed, whole)
	if err == nil && cleared < len(records) {
		for uuid, revisions := range records {
			for revision := range revisions {
				single = append(single, clearOne(uuid, revision), clearAll(uuid, map[uint64]bool{revision: true}))
			}
		}
		_, err = s.bulk(ctx, s.relaxed, single)
	}
	return s.fail(ctx, "write", err)
}

// bulkChanges is how many changes go in one command. MongoDB takes far more,
// FerretDB holds a connection to its database for each until the last is made.
const bulkChanges = 50

// bulk makes changes, one after the other, and returns how many found their
// document.
func (s *store) bulk(ctx context.Context, in *mongo.Collection, changes []mongo.WriteModel) (matched int, err error) {
	for part := range slices.Chunk(changes, bulkChanges) {
		limited, cancel := s.b.limited(ctx)
		result, err := in.BulkWrite(limited, part)
		cancel()
		if err != nil {
			return matched, err
		}
		matched += int(result.MatchedCount)
	}
	return matched, nil
}

// byRecord gathers the revisions of events by the uuids of their records.
func byRecord(events []driver.Pending) map[string]map[uint64]bool {
	records := make(map[string]map[uint64]bool)
	for _, e := range events {
		if records[e.UUID] == nil {
			records[e.UUID] = make(map[uint64]bool)
		}
		records[e.UUID][e.Revision] = true
	}
	return records
}

// clearAll clears events of a record if nothing else waits there.
func clearAll(uuid string, revisions map[uint64]bool) mongo.WriteModel {
	filter := bson.D{{Key: idField, Value: uuid}, {Key: countField, Value: len(revisions)}}
	for revision := range revisions {
		filter = append(filter, bson.E{Key: eventPath(revision), Value: exists(true)})
	}
	return mongo.NewUpdateOneModel().SetFilter(filter).SetUpdate(bson.D{{Key: "$unset", Value: bson.D{
		{Key: eventsField, Value: ""}, {Key: countField, Value: ""}, {Key: pendingField, Value: ""},
	}}})
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
