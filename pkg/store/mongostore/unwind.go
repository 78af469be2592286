package mongostore

import (
	"context"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"belfry/pkg/store/driver"
)

// entry is one key of a record.
type entry struct{ key, uuid string }

// unwindSpan answers a query for a range from an index with several keys for a
// record, a record once for each of its keys in the range. The server sorts the
// keys of all that it finds; only the records of a page are read then.
func (s *store) unwindSpan(ctx context.Context, field string, q driver.Query) (page driver.Page, err error) {
	entries, err := s.entries(ctx, field, q)
	if err != nil {
		return page, err
	}
	if len(entries) > q.Limit {
		entries = entries[:q.Limit]
		last := entries[q.Limit-1]
		page.Next = []byte(last.key + last.uuid)
	}
	uuids := make([]string, len(entries))
	for i, e := range entries {
		uuids[i] = e.uuid
	}
	docs, err := s.read(ctx, bson.D{{Key: idField, Value: bson.D{{Key: "$in", Value: uuids}}}},
		recordFields(idField), bson.D{{Key: idField, Value: 1}}, q.Limit)
	if err != nil {
		return page, err
	}
	records, err := s.records(docs)
	found := make(map[string]driver.Record, len(records))
	for _, r := range records {
		found[r.UUID] = r
	}
	for _, e := range entries {
		if r, ok := found[e.uuid]; ok {
			page.Records = append(page.Records, r)
		}
	}
	return page, err
}

// entries are the keys in the range of a query, behind the place where it goes
// on, and one more than a page has.
func (s *store) entries(ctx context.Context, field string, q driver.Query) ([]entry, error) {
	keys := spanOf(q)
	inside := bson.D{{Key: "$gte", Value: keys.lower}, {Key: "$lt", Value: keys.upper}}
	one := bson.D{{Key: field, Value: inside}}
	if q.After != nil {
		last := splitEntry(text(q.After))
		one = append(one, bson.E{Key: "$or", Value: bson.A{
			bson.D{{Key: field, Value: beyond(q, last.key)}},
			bson.D{{Key: field, Value: last.key}, {Key: idField, Value: beyond(q, last.uuid)}},
		}})
	}
	cursor, err := s.collection.Aggregate(ctx, mongo.Pipeline{
		{{Key: "$match", Value: bson.D{{Key: field, Value: bson.D{{Key: "$elemMatch", Value: inside}}}}}},
		{{Key: "$project", Value: bson.D{{Key: field, Value: 1}}}},
		{{Key: "$unwind", Value: "$" + field}},
		{{Key: "$match", Value: one}},
		{{Key: "$sort", Value: bson.D{{Key: field, Value: direction(q)}, {Key: idField, Value: direction(q)}}}},
		{{Key: "$limit", Value: q.Limit + 1}},
	}, options.Aggregate().SetBatchSize(batch(q.Limit+1)))
	docs, err := all(ctx, cursor, err)
	entries := make([]entry, len(docs))
	for i, doc := range docs {
		key, ok := doc.Lookup(field).StringValueOK()
		uuid, ok2 := doc.Lookup(idField).StringValueOK()
		if !ok || !ok2 {
			return nil, s.damaged(doc)
		}
		entries[i] = entry{key, uuid}
	}
	return entries, err
}

// splitEntry takes the place where a page ended apart. A key ends with partEnd,
// and no uuid has one.
func splitEntry(place string) entry {
	end := strings.LastIndexByte(place, partEnd) + 1
	return entry{place[:end], place[end:]}
}
