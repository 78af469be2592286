package mongostore

import (
	"context"
	"errors"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"belfry/pkg/errs"
	"belfry/pkg/store/chunk"
	"belfry/pkg/store/driver"
)

const (
	// createAttempts bounds how often a UUID is found to exist and then not to.
	createAttempts = 3

	// insertDocuments is the maximum number of documents of an insertion.
	insertDocuments = 100
)

// create creates a record unless one exists; it replaces a tombstone with a lower
// revision. Usually neither exists, and an insertion is sufficient.
func (s *store) create(ctx context.Context, w *driver.Write) error {
	if w.Array != "" {
		return chunk.ErrWhole(w.UUID, w.Array)
	}
	fields, err := s.document(w)
	if err != nil {
		return err
	}
	doc, err := bson.Marshal(fields)
	if err != nil {
		return err
	}
	if len(doc) > maxDocument {
		return errTooLarge(len(doc)) // checked here, so that others in the batch don't fail
	}
	for try := 1; ; try++ {
		err := retryRolledBack(ctx, func() error { return s.inserts.Do(ctx, doc) })
		if !mongo.IsDuplicateKeyError(err) {
			return err
		}
		// A document has the UUID, or had it at the time of the insertion.
		there, found, readErr := s.get(ctx, s.readLatest, w.UUID)
		switch {
		case readErr != nil:
			return readErr
		case found && (!there.Deleted || there.Revision >= w.FirstRevision()):
			return errMismatch()
		case found:
			err := s.update(ctx, w, bodies{s}.bodyOver(w),
				bson.D{{Key: idField, Value: w.UUID}, {Key: tombstoneField, Value: revisionText(there.Revision)}})
			if !errors.Is(err, errs.Mismatch) || try == createAttempts {
				return err
			}
		case try == createAttempts:
			return errs.Wrap(err, errs.Internal,
				"%s refuses the object %s as a duplicate, but its UUID does not exist: "+
					"check the collection %s for a unique index that belfry did not create", s.b.address, w.UUID,
				s.collection.Name())
		}
	}
}

// insert inserts documents independently and returns an error for each. A server on
// PostgreSQL inserts them in one transaction, which waits for those of others with the
// same UUIDs: in the order of UUIDs, no two of them wait for each other.
func (s *store) insert(ctx context.Context, docs []bson.Raw) []error {
	limited, cancel := s.b.withTimeout(ctx)
	defer cancel()
	order := byUUID(docs)
	sorted := make([]bson.Raw, len(docs))
	for i, at := range order {
		sorted[i] = docs[at]
	}
	_, err := s.collection.InsertMany(limited, sorted, options.InsertMany().SetOrdered(false))
	results := make([]error, len(docs))
	var refused mongo.BulkWriteException
	one := errors.As(err, &refused) && refused.WriteConcernError == nil
	if !one && len(docs) > 1 && rolledBack(err) {
		// The error of the command is that of a document; others may have been inserted.
		err = s.wrapError(ctx, "write", err)
	}
	for i := range results {
		if !one {
			results[i] = err
		}
	}
	for _, e := range refused.WriteErrors {
		if e.Index < len(results) {
			results[order[e.Index]] = mongo.WriteException{WriteErrors: mongo.WriteErrors{e.WriteError},
				Labels: refused.Labels}
		}
	}
	return results
}

// byUUID returns the positions of documents in the order of their UUIDs.
func byUUID(docs []bson.Raw) []int {
	order := make([]int, len(docs))
	uuids := make([]string, len(docs))
	for i, doc := range docs {
		order[i] = i
		uuids[i], _ = doc.Lookup(idField).StringValueOK()
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(uuids[a], uuids[b]) })
	return order
}
