package mongostore

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"belfry/pkg/errs"
)

// layout is the version of the documents that this package reads and writes.
const layout = 1

// The document with the layout of a database. The name of its collection has a dot, which those of stores have not.
const (
	layoutCollection = "belfry.layout"
	layoutID         = "layout"
	versionField     = "version"
)

// checkLayout refuses a database with documents that another version of belfry wrote in a way that this one can't read.
// A database without a layout is new, or of a release that wrote none; both have the first one.
func (b *Backend) checkLayout(ctx context.Context) error {
	if b.knownLayout.Load() {
		return nil
	}
	ctx, cancel := b.withTimeout(ctx)
	defer cancel()
	collection := b.database.Collection(layoutCollection)
	var found struct{ Version int64 }
	err := collection.FindOne(ctx, bson.D{{Key: idField, Value: layoutID}}).Decode(&found)
	if errors.Is(err, mongo.ErrNoDocuments) {
		found.Version = layout
		if _, err = collection.InsertOne(ctx,
			bson.D{{Key: idField, Value: layoutID}, {Key: versionField, Value: layout}}); mongo.IsDuplicateKeyError(
			err) {
			// Another process was first.
			err = collection.FindOne(ctx, bson.D{{Key: idField, Value: layoutID}}).Decode(&found)
		}
	}
	if err != nil {
		return b.wrapError(ctx, "read or write the collection "+layoutCollection, err)
	}
	if found.Version != layout {
		return errs.New(errs.Internal, "the database %s of %s has layout %d, and this version of belfry reads layout "+
			"%d: a newer version wrote it; use that one",
			b.database.Name(), b.address, found.Version, layout)
	}
	b.knownLayout.Store(true)
	return nil
}
