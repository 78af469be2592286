package mongostore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"belfry/pkg/errs"
	"belfry/pkg/store/chunk"
	"belfry/pkg/store/driver"
)

// The names of a collection's indexes. Those of keys are "belfry." and the name of
// their field; they are dropped when the store no longer has the index. Indexes with
// other names are not changed.
const (
	pendingIndex   = "belfry.pending"
	tombstoneIndex = "belfry.tombstones"
	indexPrefix    = "belfry."
	keyIndexes     = indexPrefix + "k:"
)

// maxIndexes is the number of indexes for keys; a collection can have 64 indexes.
const maxIndexes = 61

// buildTimeout bounds the building of an index.
const buildTimeout = 24 * time.Hour

// wantedIndex is an index that a collection must have.
type wantedIndex struct {
	name   string
	key    bson.D
	sparse bool
	field  string // of keys; "": it is an index that every store has, whose field is always up to date
}

// forKeys reports whether it is one of the configuration's indexes.
func (w wantedIndex) forKeys() bool { return w.field != "" }

func indexesOf(indexes map[string]driver.Index) []wantedIndex {
	list := []wantedIndex{
		{name: pendingIndex, key: bson.D{{Key: pendingField, Value: 1}}, sparse: true},
		{name: tombstoneIndex, key: bson.D{{Key: tombstoneField, Value: 1}}, sparse: true},
	}
	for _, ix := range indexes {
		field := keyField(ix)
		w := wantedIndex{name: indexPrefix + field, key: bson.D{{Key: field, Value: 1}}, sparse: true, field: field}
		if ix.Multi {
			w.key, w.sparse = append(w.key, bson.E{Key: idField, Value: 1}), false
		}
		list = append(list, w)
	}
	return list
}

// Open implements driver.Backend.
func (b *Backend) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	if err := spec.Check(); err != nil {
		return nil, err
	}
	if len(spec.Indexes) > maxIndexes {
		return nil, errs.New(errs.Invalid, "the store %s has %d indexes: MongoDB keeps at most %d of them", spec.Name,
			len(spec.Indexes), maxIndexes)
	}
	if err := b.checkLayout(ctx); err != nil {
		return nil, err
	}
	s := b.store(spec)
	if err := s.prepare(ctx); err != nil || spec.Online {
		return s, err
	}
	if err := driver.BuildIndexes(ctx, s); err != nil {
		return nil, err
	}
	return s, s.Release(ctx)
}

// prepare creates the collection with its indexes. Where there is one, the indexes for keys that are new are built
// later.
func (s *store) prepare(ctx context.Context) error {
	exists, err := s.checkCollection(ctx)
	if err != nil {
		return err
	}
	present, err := s.presentIndexes(ctx)
	if err != nil {
		return err
	}
	list := indexesOf(s.indexes)
	if err := s.checkIndexes(present, list); err != nil {
		return err
	}
	if !exists {
		if err := s.forgetBuilds(ctx); err != nil { // of a collection that somebody has dropped
			return err
		}
		return s.createIndexes(ctx, list)
	}
	if err := s.createIndexes(ctx,
		absent(present, slices.DeleteFunc(slices.Clone(list), wantedIndex.forKeys))); err != nil {
		return err
	}
	_, err = s.Building(ctx)
	return err
}

// absent returns the indexes that a collection lacks.
func absent(present map[string]bson.Raw, list []wantedIndex) []wantedIndex {
	return slices.DeleteFunc(slices.Clone(list), func(w wantedIndex) bool { return present[w.name] != nil })
}

// Stores implements driver.Backend. The collections of others in the same database lack belfry's indexes.
func (b *Backend) Stores(ctx context.Context) (names []string, err error) {
	limited, cancel := b.withTimeout(ctx)
	defer cancel()
	found, err := b.database.ListCollectionNames(limited, bson.D{{Key: "type", Value: "collection"}})
	if err != nil {
		return nil, b.wrapError(ctx, "list the collections", err)
	}
	for _, collection := range found {
		name, ok := unescape(collection)
		if !ok {
			continue
		}
		present, err := b.store(driver.Spec{Name: name}).presentIndexes(ctx)
		if err != nil {
			return nil, err
		}
		if present[pendingIndex] != nil {
			names = append(names, name)
		}
	}
	return names, nil
}

func (b *Backend) store(spec driver.Spec) *store {
	name := escape(spec.Name)
	s := &store{
		b: b, name: spec.Name, indexes: make(map[string]driver.Index), computeKeys: spec.Keys,
		first: driver.NewFirstWrite(), arrays: chunk.ArraysOf(&spec), collection: b.database.Collection(name),
		readLatest: b.database.Collection(name, options.Collection().SetReadConcern(readconcern.Local())),
		writeFast:  b.database.Collection(name, options.Collection().SetWriteConcern(writeconcern.W1())),
	}
	s.inserts = driver.NewBatcher(b.maxInserts, insertDocuments, s.insert)
	for _, ix := range spec.Indexes {
		s.indexes[ix.Name] = ix
	}
	return s
}

// checkCollection refuses a collection in which records could be lost or UUIDs
// confused, and reports whether there is one.
func (s *store) checkCollection(ctx context.Context) (exists bool, err error) {
	limited, cancel := s.b.withTimeout(ctx)
	defer cancel()
	found, err := s.b.database.ListCollectionSpecifications(limited, bson.D{{Key: "name", Value: s.collection.Name()}})
	if err != nil {
		return false, s.wrapError(ctx, "list", err)
	}
	for _, c := range found {
		capped, _ := c.Options.Lookup("capped").BooleanOK()
		switch {
		case c.Type != "collection" || capped:
			return false, s.refuseCollection("is a view, a capped or a time series collection")
		case !c.Options.Lookup("collation").IsZero():
			return false, s.refuseCollection("has a collation, which may treat different UUIDs as equal")
		}
	}
	return len(found) > 0, nil
}

func (s *store) refuseCollection(what string) error {
	return errs.New(errs.Internal,
		"the collection %s of the database %s, %s, %s: rename it, so that belfry can create its own",
		s.collection.Name(), s.b.database.Name(), s.b.address, what)
}

// presentIndexes returns the indexes of the collection by name.
func (s *store) presentIndexes(ctx context.Context) (map[string]bson.Raw, error) {
	limited, cancel := s.b.withTimeout(ctx)
	defer cancel()
	cursor, err := s.collection.Indexes().List(limited)
	docs, err := all(limited, cursor, err)
	if err != nil {
		return nil, s.wrapError(ctx, "list the indexes of", err)
	}
	present := make(map[string]bson.Raw)
	for _, doc := range docs {
		name, _ := doc.Lookup("name").StringValueOK()
		present[name] = doc
	}
	return present, nil
}

// checkIndexes refuses indexes that would prevent writes, delete documents or give
// wrong results: foreign unique and TTL indexes, and indexes with belfry's names but
// another definition.
func (s *store) checkIndexes(present map[string]bson.Raw, list []wantedIndex) error {
	refuse := func(name, what string) error {
		return errs.New(errs.Internal,
			"the index %s of the collection %s, %s, %s: drop it, and belfry creates what it needs",
			name, s.collection.Name(), s.b.address, what)
	}
	for name, doc := range present {
		unique, _ := doc.Lookup("unique").BooleanOK()
		switch {
		case name == "_id_":
		case unique:
			return refuse(name, "is unique, which may prevent writes of objects")
		case !doc.Lookup("expireAfterSeconds").IsZero():
			return refuse(name, "is a TTL index, which deletes documents")
		}
	}
	for _, w := range list {
		doc := present[w.name]
		if doc == nil {
			continue
		}
		for _, option := range []string{"partialFilterExpression", "collation", "hidden"} {
			if !doc.Lookup(option).IsZero() {
				return refuse(w.name, "has the option "+option+", which belfry's queries can't use")
			}
		}
		if !sameKey(doc, w.key) {
			return refuse(w.name, "has another definition than belfry's index of this name")
		}
	}
	return nil
}

// sameKey compares the key of an existing index with that of a wanted one.
func sameKey(doc bson.Raw, want bson.D) bool {
	key, ok := doc.Lookup("key").DocumentOK()
	if !ok {
		return false
	}
	elements, err := key.Elements()
	if err != nil || len(elements) != len(want) {
		return false
	}
	for i, e := range elements {
		if n, ok := e.Value().AsInt64OK(); !ok || n != 1 || e.Key() != want[i].Key {
			return false
		}
	}
	return true
}

// dropIndexes drops the indexes for keys that the store does not list.
func (s *store) dropIndexes(ctx context.Context, present map[string]bson.Raw, list []wantedIndex) error {
	for name := range present {
		if !strings.HasPrefix(name, keyIndexes) ||
			slices.ContainsFunc(list, func(w wantedIndex) bool { return w.name == name }) {
			continue
		}
		limited, cancel := s.b.withTimeout(ctx)
		err := s.collection.Indexes().DropOne(limited, name)
		cancel()
		if err != nil && !isMissing(err) {
			return s.wrapError(ctx, "drop the index "+name+" of", err)
		}
	}
	return nil
}

// isMissing reports whether another process has dropped an index, or the collection with
// it.
func isMissing(err error) bool {
	var server mongo.ServerError
	return errors.As(err, &server) && hasCode(server, []int{26, 27})
}

// createIndexes builds indexes and waits until they are ready.
func (s *store) createIndexes(ctx context.Context, list []wantedIndex) error {
	if len(list) == 0 {
		return nil
	}
	models := make([]mongo.IndexModel, len(list))
	for i, w := range list {
		models[i] = mongo.IndexModel{Keys: w.key, Options: options.Index().SetName(w.name)}
		if w.sparse {
			models[i].Options.SetSparse(true)
		}
	}
	limited, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	_, err := s.collection.Indexes().CreateMany(limited, models)
	return s.wrapError(ctx, "make the indexes of", err)
}
