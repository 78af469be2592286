package mongostore

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

const (
	// createTries bounds how often a uuid is found taken and then free.
	createTries = 3

	// insertDocuments is how many documents one insertion has at most.
	insertDocuments = 100
)

// create makes a record where there is none or a lower tombstone. Most often
// there is none, and one insertion, by itself or with others, does it.
func (s *store) create(ctx context.Context, w *driver.Write) error {
	fields, err := s.document(w)
	if err != nil {
		return err
	}
	doc, err := bson.Marshal(fields)
	if err != nil {
		return err
	}
	if len(doc) > maxDocument {
		return errTooLarge(len(doc)) // here, that those it would go with don't fail with it
	}
	for try := 1; ; try++ {
		err := s.inserts.Do(ctx, doc)
		if !mongo.IsDuplicateKeyError(err) {
			return err
		}
		// Something has the uuid, or had it then.
		there, found, readErr := s.get(ctx, s.newest, w.UUID)
		switch {
		case readErr != nil:
			return readErr
		case found && (!there.Deleted || there.Revision >= w.FirstRevision()):
			return errMismatch()
		case found:
			err := s.change(ctx, w, bson.D{{Key: idField, Value: w.UUID}, {Key: tombstoneField, Value: digits(there.Revision)}})
			if !errors.Is(err, errs.Mismatch) || try == createTries {
				return err
			}
		case try == createTries:
			return errs.Wrap(err, errs.Internal, "%s refuses the object %s as a duplicate, though nothing has its uuid: "+
				"look for a unique index that belfry did not make on the collection %s", s.b.place, w.UUID, s.collection.Name())
		}
	}
}

// insert inserts documents, each for itself, and says what became of each.
func (s *store) insert(ctx context.Context, docs []bson.Raw) []error {
	limited, cancel := s.b.limited(ctx)
	defer cancel()
	_, err := s.collection.InsertMany(limited, docs, options.InsertMany().SetOrdered(false))
	results := make([]error, len(docs))
	var refused mongo.BulkWriteException
	one := errors.As(err, &refused) && refused.WriteConcernError == nil
	for i := range results {
		if !one {
			results[i] = err
		}
	}
	for _, e := range refused.WriteErrors {
		if e.Index < len(results) {
			results[e.Index] = mongo.WriteException{WriteErrors: mongo.WriteErrors{e.WriteError}, Labels: refused.Labels}
		}
	}
	return results
}
