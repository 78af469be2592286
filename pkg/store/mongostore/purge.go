package mongostore

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"belfry/pkg/store/driver"
)

// purgeRound is the number of tombstones that are removed together.
const purgeRound = 1000

// Purge implements driver.Store.
func (s *store) Purge(ctx context.Context, before uint64, limit int) (removed int, err error) {
	if err := driver.CheckLimit(limit); err != nil {
		return 0, err
	}
	for removed < limit {
		n, err := s.purge(ctx, before, min(limit-removed, purgeRound))
		removed += n
		if err != nil || n == 0 {
			return removed, err
		}
	}
	return removed, nil
}

// purge removes the tombstones that it finds, unless they were changed in the meantime.
func (s *store) purge(ctx context.Context, before uint64, limit int) (int, error) {
	limited, cancel := s.b.withTimeout(ctx)
	defer cancel()
	idle := bson.D{
		{Key: tombstoneField, Value: bson.D{{Key: "$lt", Value: revisionText(before)}}},
		{Key: pendingField, Value: exists(false)},
	}
	docs, err := s.read(limited, idle, bson.D{{Key: idField, Value: 1}}, bson.D{{Key: tombstoneField, Value: 1}}, limit)
	if err != nil || len(docs) == 0 {
		return 0, s.wrapError(ctx, "search", err)
	}
	uuids := make(bson.A, len(docs))
	for i, doc := range docs {
		uuids[i] = doc.Lookup(idField)
	}
	found := append(bson.D{{Key: idField, Value: bson.D{{Key: "$in", Value: uuids}}}}, idle...)
	var result *mongo.DeleteResult
	err = retryRolledBack(ctx, func() error { result, err = s.collection.DeleteMany(limited, found); return err })
	if err != nil {
		return 0, s.wrapError(ctx, "purge", err)
	}
	return int(result.DeletedCount), nil
}
