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

// store is one store of a Backend.
type store struct {
	b       *Backend
	name    string
	indexes map[string]driver.Index

	collection *mongo.Collection // majority for reads and writes
	newest     *mongo.Collection // reads what the primary has, be it undone later
	relaxed    *mongo.Collection // writes without waiting for a majority

	inserts *driver.Batcher[bson.Raw]
}

var _ driver.Store = (*store)(nil)

// maxWrite is how much a write may bring, of what a document has room for.
const (
	maxWrite    = 15 << 20
	maxDocument = 16 << 20
)

func (s *store) fail(ctx context.Context, doing string, err error) error {
	return s.b.fail(ctx, doing+" the collection "+s.collection.Name(), err)
}

// Get is part of driver.Store.
func (s *store) Get(ctx context.Context, uuid string) (driver.Record, bool, error) {
	return s.get(ctx, s.collection, uuid)
}

func (s *store) get(ctx context.Context, from *mongo.Collection, uuid string) (driver.Record, bool, error) {
	limited, cancel := s.b.limited(ctx)
	defer cancel()
	doc, err := from.FindOne(limited, bson.D{{Key: idField, Value: uuid}}, options.FindOne().SetProjection(recordFields(idField))).Raw()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return driver.Record{}, false, nil
	}
	if err != nil {
		return driver.Record{}, false, s.fail(ctx, "read", err)
	}
	record, err := s.record(doc)
	return record, err == nil, err
}

// Put is part of driver.Store.
func (s *store) Put(ctx context.Context, w driver.Write) error {
	if w.IfRevision != 0 && w.FirstRevision() <= w.IfRevision {
		return errMismatch()
	}
	if size := sizeOf(&w); size > maxWrite {
		return errTooLarge(size)
	}
	if w.IfRevision == 0 {
		return s.fail(ctx, "write", s.create(ctx, &w))
	}
	err := s.fail(ctx, "write", s.change(ctx, &w, bson.D{
		{Key: idField, Value: w.UUID},
		{Key: revisionField, Value: digits(w.IfRevision)},
		{Key: tombstoneField, Value: exists(false)},
	}))
	if errors.Is(err, errs.TooLarge) {
		// The write alone would fit.
		err = errs.Wrap(err, errs.Unavailable, "so many events of the object %s wait to be published that no more fit into its document: "+
			"it takes writes again once the bus does", w.UUID)
	}
	return err
}

func errMismatch() error {
	return errs.New(errs.Mismatch, "the object was changed by someone else meanwhile")
}

func errTooLarge(size int) error {
	return errs.New(errs.TooLarge, "the object, with its keys and events, has %d bytes: MongoDB keeps at most %d together", size, maxWrite)
}

// sizeOf is how large the parts of a write are.
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

// change makes a write of the record that meets a filter.
func (s *store) change(ctx context.Context, w *driver.Write, filter bson.D) error {
	change, err := s.changeOf(w)
	if err != nil {
		return err
	}
	limited, cancel := s.b.limited(ctx)
	defer cancel()
	result, err := s.collection.UpdateOne(limited, filter, change)
	if err == nil && result.MatchedCount == 0 {
		return errMismatch()
	}
	return err
}
