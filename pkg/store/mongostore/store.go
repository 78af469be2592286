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
}

var _ driver.Store = (*store)(nil)

// maxWrite is how much a write may bring, of the 16 MiB that a document has.
const maxWrite = 15 << 20

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
	if w.If != 0 && w.First() <= w.If {
		return errMismatch()
	}
	if size := sizeOf(&w); size > maxWrite {
		return errs.New(errs.TooLarge, "the object, with its keys and events, has %d bytes: MongoDB keeps at most %d together", size, maxWrite)
	}
	change, err := s.change(&w)
	if err != nil {
		return err
	}
	if w.If == 0 {
		err = s.create(ctx, &w, change)
	} else {
		err = s.update(ctx, &w, change)
	}
	err = s.fail(ctx, "write", err)
	if errs.Is(err, errs.TooLarge) {
		// The write alone would fit.
		err = errs.Wrap(err, errs.Unavailable, "so many events of the object %s wait to be published that no more fit into its document: "+
			"it takes writes again once the bus does", w.UUID)
	}
	return err
}

func errMismatch() error {
	return errs.New(errs.Mismatch, "the object was changed by someone else meanwhile")
}

// sizeOf is how large the parts of a write are.
func sizeOf(w *driver.Write) int {
	size := len(w.Body) + len(w.Event.Payload)
	for i := range w.Also {
		size += len(w.Also[i].Payload)
	}
	for i := range w.Keys {
		for _, part := range w.Keys[i].Parts {
			size += len(part)
		}
	}
	return size
}

// update changes a live record that is at a revision.
func (s *store) update(ctx context.Context, w *driver.Write, change bson.D) error {
	result, err := s.updateOne(ctx, bson.D{
		{Key: idField, Value: w.UUID},
		{Key: revisionField, Value: digits(w.If)},
		{Key: tombstoneField, Value: exists(false)},
	}, change, options.UpdateOne())
	if err == nil && result.MatchedCount == 0 {
		return errMismatch()
	}
	return err
}

func (s *store) updateOne(ctx context.Context, filter, change bson.D, o *options.UpdateOneOptionsBuilder) (*mongo.UpdateResult, error) {
	limited, cancel := s.b.limited(ctx)
	defer cancel()
	return s.collection.UpdateOne(limited, filter, change, o)
}

// createTries bounds how often a uuid is found taken and then free.
const createTries = 3

// create makes a record where there is none or a lower tombstone.
func (s *store) create(ctx context.Context, w *driver.Write, change bson.D) error {
	free := bson.D{
		{Key: idField, Value: w.UUID},
		{Key: tombstoneField, Value: bson.D{{Key: "$lt", Value: digits(w.First())}}},
	}
	for try := 1; ; try++ {
		_, err := s.updateOne(ctx, free, change, options.UpdateOne().SetUpsert(true))
		if !mongo.IsDuplicateKeyError(err) {
			return err
		}
		// Something had the uuid when the server tried to insert. It may have
		// been purged since, or be a tombstone that came up meanwhile.
		there, found, readErr := s.get(ctx, s.newest, w.UUID)
		switch {
		case readErr != nil:
			return readErr
		case found && (!there.Deleted || there.Revision >= w.First()):
			return errMismatch()
		case try == createTries:
			return errs.Wrap(err, errs.Internal, "%s refuses the object %s as a duplicate, though nothing has its uuid: "+
				"look for a unique index that belfry did not make on the collection %s", s.b.place, w.UUID, s.collection.Name())
		}
	}
}
