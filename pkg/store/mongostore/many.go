package mongostore

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"belfry/pkg/store/driver"
)

var (
	_ driver.ManyGetter = (*store)(nil)
	_ driver.KeyCounter = (*store)(nil)
)

// GetMany implements driver.ManyGetter.
func (s *store) GetMany(ctx context.Context, uuids []string) ([]driver.Record, error) {
	limited, cancel := s.b.withTimeout(ctx)
	defer cancel()
	docs, err := s.read(limited, bson.D{{Key: idField, Value: bson.D{{Key: "$in", Value: uuids}}}},
		recordFields(idField), bson.D{{Key: idField, Value: 1}}, len(uuids))
	if err != nil {
		return nil, s.wrapError(ctx, "read", err)
	}
	records := make([]driver.Record, 0, len(docs))
	for _, doc := range docs {
		r, err := s.decodeRecord(doc)
		if err != nil {
			return nil, err
		}
		if !r.Deleted {
			records = append(records, r)
		}
	}
	return records, nil
}

// CountKeys implements driver.KeyCounter. Tombstones are left out as in find.
func (s *store) CountKeys(ctx context.Context, q driver.Query, limit int) (n int, all bool, err error) {
	q.Limit, q.After = limit+1, nil
	filter := bson.D{{Key: bodyField, Value: exists(true)}}
	if q.Index != "" {
		ix := s.indexes[q.Index]
		if err := q.Check(ix); err != nil {
			return 0, false, err
		}
		filter = inSpan(keyField(ix), q)
		if ix.Multi {
			filter = bson.D{{Key: keyField(ix), Value: encodeParts(q.Equal)}}
		}
		filter = append(filter, bson.E{Key: tombstoneField, Value: exists(false)})
	}
	limited, cancel := s.b.withTimeout(ctx)
	defer cancel()
	counted, err := s.collection.CountDocuments(limited, filter, options.Count().SetLimit(int64(limit)+1))
	return int(counted), counted <= int64(limit), s.wrapError(ctx, "count", err)
}
