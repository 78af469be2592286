package mongostore

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"belfry/pkg/errs"
	"belfry/pkg/store/chunk"
	"belfry/pkg/store/driver"
)

// store is a handle of a store.
type store struct {
	b           *Backend
	name        string
	indexes     map[string]driver.Index
	computeKeys func(body []byte) []driver.Key
	first       *driver.FirstWrite
	arrays      chunk.Arrays
	recent      recent

	collection *mongo.Collection // majority read and write concern
	readLatest *mongo.Collection // local read concern: reads may be rolled back
	writeFast  *mongo.Collection // write concern 1

	inserts *driver.Batcher[bson.Raw]
}

var _ driver.Store = (*store)(nil)

// The maximum sizes of a write and of a document.
const (
	maxWrite    = 15 << 20
	maxDocument = 16 << 20
)

func (s *store) wrapError(ctx context.Context, doing string, err error) error {
	return s.b.wrapError(ctx, doing+" the collection "+s.collection.Name(), err)
}

// Get implements driver.Store.
func (s *store) Get(ctx context.Context, uuid string) (driver.Record, bool, error) {
	return s.get(ctx, s.collection, uuid)
}

func (s *store) get(ctx context.Context, from *mongo.Collection, uuid string) (driver.Record, bool, error) {
	doc, err := bodies{s}.findOne(ctx, from, bson.D{{Key: idField, Value: uuid}}, recordFields(idField))
	if err != nil || doc == nil {
		return driver.Record{}, false, err
	}
	record, err := s.decodeRecord(doc)
	return record, err == nil, err
}

// findOne reads the document that matches a filter; nil: no document does.
func (s bodies) findOne(ctx context.Context, from *mongo.Collection, filter, projection bson.D) (bson.Raw, error) {
	limited, cancel := s.b.withTimeout(ctx)
	defer cancel()
	doc, err := from.FindOne(limited, filter, options.FindOne().SetProjection(projection)).Raw()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil, nil
	}
	return doc, s.wrapError(ctx, "read", err)
}

// Put implements driver.Store.
func (s *store) Put(ctx context.Context, w driver.Write) error {
	if w.IfRevision != 0 && w.FirstRevision() <= w.IfRevision {
		return errMismatch()
	}
	if size := sizeOf(&w); size > maxWrite {
		return errTooLarge(size)
	}
	if err := s.beforeWrite(ctx); err != nil {
		return err
	}
	if w.IfRevision == 0 {
		return s.wrapError(ctx, "write", s.create(ctx, &w))
	}
	body, err := bodies{s}.bodyChange(ctx, &w)
	if err != nil {
		return err
	}
	err = s.wrapError(ctx, "write", s.update(ctx, &w, body, atRevision(&w)))
	if errors.Is(err, errs.TooLarge) {
		// Only the pending events make the document too large.
		err = errs.Wrap(err, errs.Unavailable, "the object %s has too many pending events to add another: "+
			"it can be written again when they have been published", w.UUID)
	}
	return err
}

// atRevision is the filter of the live record that an update requires.
func atRevision(w *driver.Write) bson.D {
	return bson.D{
		{Key: idField, Value: w.UUID},
		{Key: revisionField, Value: revisionText(w.IfRevision)},
		{Key: tombstoneField, Value: exists(false)},
	}
}

func errMismatch() error {
	return errs.New(errs.Mismatch, "the object was changed concurrently")
}

func errTooLarge(size int) error {
	return errs.New(errs.TooLarge, "the object has %d bytes with its keys and events; the limit of this backend is %d",
		size, maxWrite)
}

// sizeOf returns the size of the parts of a write.
func sizeOf(w *driver.Write) int {
	size := len(w.Body) + len(w.Event.Payload)
	for i := range w.ExtraEvents {
		size += len(w.ExtraEvents[i].Payload)
	}
	for i := range w.Keys {
		for _, part := range w.Keys[i].Parts {
			size += len(part)
		}
	}
	return size
}

// update makes a write of the record that matches a filter.
func (s *store) update(ctx context.Context, w *driver.Write, body bodyChange, filter bson.D) error {
	change, err := s.updateOf(w, body)
	if err != nil {
		return err
	}
	return retryRolledBack(ctx, func() error {
		limited, cancel := s.b.withTimeout(ctx)
		defer cancel()
		result, err := s.collection.UpdateOne(limited, filter, change)
		if err == nil && result.MatchedCount == 0 {
			return errMismatch()
		}
		return err
	})
}
