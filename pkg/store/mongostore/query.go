package mongostore

import (
	"context"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"belfry/pkg/store/driver"
)

// Query implements driver.Store. Its indexes don't lag.
func (s *store) Query(ctx context.Context, q driver.Query) (page driver.Page, err error) {
	ix := s.indexes[q.Index]
	if err := q.Check(ix); err != nil {
		return page, err
	}
	limited, cancel := s.b.withTimeout(ctx)
	defer cancel()
	if ix.Multi {
		page, err = s.findEqual(limited, keyField(ix), q)
	} else {
		page, err = s.findSpan(limited, keyField(ix), q)
	}
	return page, s.wrapError(ctx, "search", err)
}

// Position implements driver.Store.
func (s *store) Position(index string, key [][]byte, uuid string) []byte {
	if s.indexes[index].Multi {
		return []byte(uuid)
	}
	return []byte(encodeParts(key) + uuid)
}

// findSpan queries an index whose keys end with the UUID.
func (s *store) findSpan(ctx context.Context, field string, q driver.Query) (driver.Page, error) {
	return s.find(ctx, inSpan(field, q), field, direction(q), q.Limit, q.PageBytes())
}

// inSpan returns the filter of a query of such an index.
func inSpan(field string, q driver.Query) bson.D {
	keys := spanOf(q)
	lower := bson.E{Key: "$gte", Value: keys.lower}
	if after := text(q.After); q.After != nil && q.Descending {
		keys.upper = min(keys.upper, after)
	} else if q.After != nil && after >= keys.lower {
		lower = bson.E{Key: "$gt", Value: after}
	}
	return bson.D{{Key: field, Value: bson.D{lower, {Key: "$lt", Value: keys.upper}}}}
}

// findEqual queries an index with several keys per record for one key, in the
// order of UUIDs, which follow the key in the index.
func (s *store) findEqual(ctx context.Context, field string, q driver.Query) (driver.Page, error) {
	filter := bson.D{{Key: field, Value: encodeParts(q.Equal)}}
	if q.After != nil {
		filter = append(filter, bson.E{Key: idField, Value: afterPosition(q, text(q.After))})
	}
	return s.find(ctx, filter, idField, direction(q), q.Limit, q.PageBytes())
}

// find reads a page of the documents that match a filter, sorted by a field with unique
// text values, which are the positions. Tombstones among them are left out: they keep the
// keys of indexes that the process which wrote them did not know.
func (s *store) find(ctx context.Context, filter bson.D, sort string,
	direction, limit, maxBytes int) (page driver.Page, err error) {
	cursor, err := s.cursor(ctx, filter, recordFields(sort), bson.D{{Key: sort, Value: direction}}, limit+1)
	if err != nil {
		return page, err
	}
	// The server keeps a cursor only when the page ended at its size, and forgets it by itself.
	defer func() { _ = cursor.Close(ctx) }()
	var last []byte
	for n := 0; cursor.Next(ctx); n++ {
		position, ok := cursor.Current.Lookup(sort).StringValueOK()
		if !ok {
			return driver.Page{}, s.errForeign(cursor.Current)
		}
		r, err := s.decodeRecord(cursor.Current)
		if err != nil {
			return driver.Page{}, err
		}
		if n == limit || !r.Deleted && !page.Append(r, []byte(position), limit, maxBytes) {
			page.Next = last
			return page, nil
		}
		last = []byte(position)
	}
	return page, cursor.Err()
}

// read reads at most limit documents, in one reply unless they exceed its size.
func (s *store) read(ctx context.Context, filter, projection, sort bson.D, limit int) ([]bson.Raw, error) {
	cursor, err := s.cursor(ctx, filter, projection, sort, limit)
	return all(ctx, cursor, err)
}

func (s *store) cursor(ctx context.Context, filter, projection, sort bson.D, limit int) (*mongo.Cursor, error) {
	return s.collection.Find(ctx, filter, options.Find().SetProjection(projection).SetSort(sort).
		SetLimit(int64(limit)).SetBatchSize(batch(limit)))
}

// batch returns a batch size above a limit, so that the server keeps no cursor.
func batch(limit int) int32 { return int32(min(limit, 1<<20)) + 1 }

// all reads all documents of a cursor.
func all(ctx context.Context, cursor *mongo.Cursor, err error) ([]bson.Raw, error) {
	if err != nil {
		return nil, err
	}
	var docs []bson.Raw
	return docs, cursor.All(ctx, &docs)
}

func direction(q driver.Query) int {
	if q.Descending {
		return -1
	}
	return 1
}

// afterPosition returns the condition for values after a text in the order of a query.
func afterPosition(q driver.Query, text string) bson.D {
	if q.Descending {
		return bson.D{{Key: "$lt", Value: text}}
	}
	return bson.D{{Key: "$gt", Value: text}}
}

// text converts a cursor, which may be forged, to valid UTF-8.
func text(after []byte) string { return strings.ToValidUTF8(string(after), "?") }

// Scan implements driver.Store.
func (s *store) Scan(ctx context.Context, after []byte, limit int) (driver.Page, error) {
	return s.scan(ctx, after, limit, driver.Query{})
}

// ScanBackward implements driver.Store.
func (s *store) ScanBackward(ctx context.Context, before []byte, limit int) (driver.Page, error) {
	return s.scan(ctx, before, limit, driver.Query{Descending: true})
}

// scan reads a page of live records in the direction of a query.
func (s *store) scan(ctx context.Context, after []byte, limit int, q driver.Query) (driver.Page, error) {
	if err := driver.CheckLimit(limit); err != nil {
		return driver.Page{}, err
	}
	limited, cancel := s.b.withTimeout(ctx)
	defer cancel()
	filter := bson.D{{Key: bodyField, Value: exists(true)}}
	if after != nil {
		filter = append(filter, bson.E{Key: idField, Value: afterPosition(q, text(after))})
	}
	page, err := s.find(limited, filter, idField, direction(q), limit, driver.MaxPageBytes)
	return page, s.wrapError(ctx, "search", err)
}
