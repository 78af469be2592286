package mongostore

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// The names of a collection's indexes. Those of keys are "belfry." and their
// field; they are dropped when no index of the store is theirs. Indexes with
// other names are left alone.
const (
	pendingIndex   = "belfry.pending"
	tombstoneIndex = "belfry.tombstones"
	keyIndexes     = "belfry.k:"
)

// maxIndexes is how many of a collection's 64 indexes are left for keys.
const maxIndexes = 61

// buildLimit is how long an index may take to be built.
const buildLimit = 24 * time.Hour

// wanted is an index that a collection must have.
type wanted struct {
	name   string
	key    bson.D
	sparse bool
	filled bool // its fields are always there; others are filled before it is made
}

func indexesOf(indexes []driver.Index) []wanted {
	list := []wanted{
		{name: pendingIndex, key: bson.D{{Key: pendingField, Value: 1}}, sparse: true, filled: true},
		{name: tombstoneIndex, key: bson.D{{Key: tombstoneField, Value: 1}}, sparse: true, filled: true},
	}
	for _, ix := range indexes {
		w := wanted{name: "belfry." + keyField(ix), key: bson.D{{Key: keyField(ix), Value: 1}}, sparse: true}
		if ix.Multi {
			w.key, w.sparse = append(w.key, bson.E{Key: idField, Value: 1}), false
		}
		list = append(list, w)
	}
	return list
}

// Open is part of driver.Backend.
func (b *Backend) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	if err := spec.Check(); err != nil {
		return nil, err
	}
	if len(spec.Indexes) > maxIndexes {
		return nil, errs.New(errs.Invalid, "the store %s has %d indexes: MongoDB keeps at most %d of them", spec.Name, len(spec.Indexes), maxIndexes)
	}
	s := b.store(spec)
	if err := s.checkCollection(ctx); err != nil {
		return nil, err
	}
	present, err := s.presentIndexes(ctx)
	if err != nil {
		return nil, err
	}
	list := indexesOf(spec.Indexes)
	missing := slices.DeleteFunc(slices.Clone(list), func(w wanted) bool { return present[w.name] != nil })
	if err := s.checkIndexes(present, list); err != nil {
		return nil, err
	}
	if err := s.dropIndexes(ctx, present, list); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(missing, func(w wanted) bool { return !w.filled }) {
		if err := s.fill(ctx, spec.Keys); err != nil {
			return nil, err
		}
	}
	return s, s.makeIndexes(ctx, missing)
}

func (b *Backend) store(spec driver.Spec) *store {
	name := escape(spec.Name)
	s := &store{
		b: b, name: spec.Name, indexes: make(map[string]driver.Index),
		collection: b.database.Collection(name),
		newest:     b.database.Collection(name, options.Collection().SetReadConcern(readconcern.Local())),
		relaxed:    b.database.Collection(name, options.Collection().SetWriteConcern(writeconcern.W1())),
	}
	s.inserts = driver.NewBatcher(b.maxInserts, insertDocuments, s.insert)
	for _, ix := range spec.Indexes {
		s.indexes[ix.Name] = ix
	}
	return s
}

// checkCollection refuses a collection in which uuids could be lost or taken
// for one another. One that isn't there is made with its indexes.
func (s *store) checkCollection(ctx context.Context) error {
	limited, cancel := s.b.limited(ctx)
	defer cancel()
	found, err := s.b.database.ListCollectionSpecifications(limited, bson.D{{Key: "name", Value: s.collection.Name()}})
	if err != nil {
		return s.fail(ctx, "list", err)
	}
	for _, c := range found {
		capped, _ := c.Options.Lookup("capped").BooleanOK()
		switch {
		case c.Type != "collection" || capped:
			return s.wrong("is a view, capped, or of times")
		case !c.Options.Lookup("collation").IsZero():
			return s.wrong("has a collation, by which different uuids may be the same")
		}
	}
	return nil
}

func (s *store) wrong(what string) error {
	return errs.New(errs.Internal, "the collection %s of the database %s, %s, %s: rename it, so that belfry makes its own",
		s.collection.Name(), s.b.database.Name(), s.b.place, what)
}

// presentIndexes are the indexes of the collection by their names.
func (s *store) presentIndexes(ctx context.Context) (map[string]bson.Raw, error) {
	limited, cancel := s.b.limited(ctx)
	defer cancel()
	cursor, err := s.collection.Indexes().List(limited)
	docs, err := all(limited, cursor, err)
	if err != nil {
		return nil, s.fail(ctx, "list the indexes of", err)
	}
	present := make(map[string]bson.Raw)
	for _, doc := range docs {
		name, _ := doc.Lookup("name").StringValueOK()
		present[name] = doc
	}
	return present, nil
}

// checkIndexes refuses what would keep writes or find something else: an index
// with one of our names that is another, and those of others that forbid or
// delete documents.
func (s *store) checkIndexes(present map[string]bson.Raw, list []wanted) error {
	refuse := func(name, what string) error {
		return errs.New(errs.Internal, "the index %s of the collection %s, %s, %s: drop it, and belfry makes what it needs",
			name, s.collection.Name(), s.b.place, what)
	}
	for name, doc := range present {
		unique, _ := doc.Lookup("unique").BooleanOK()
		switch {
		case name == "_id_":
		case unique:
			return refuse(name, "is unique, which may keep objects from being written")
		case !doc.Lookup("expireAfterSeconds").IsZero():
			return refuse(name, "lets documents expire")
		}
	}
	for _, w := range list {
		doc := present[w.name]
		if doc == nil {
			continue
		}
		for _, option := range []string{"partialFilterExpression", "collation", "hidden"} {
			if !doc.Lookup(option).IsZero() {
				return refuse(w.name, "has the option "+option+", with which it can't be searched")
			}
		}
		if !sameKey(doc, w.key) {
			return refuse(w.name, "is not the one that belfry makes under this name")
		}
	}
	return nil
}

// sameKey compares the key of an index that is there with one that is wanted.
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

// dropIndexes drops the indexes of keys that the store no longer has. Were they
// left, they would lack what is written from now on.
func (s *store) dropIndexes(ctx context.Context, present map[string]bson.Raw, list []wanted) error {
	for name := range present {
		if !strings.HasPrefix(name, keyIndexes) || slices.ContainsFunc(list, func(w wanted) bool { return w.name == name }) {
			continue
		}
		limited, cancel := s.b.limited(ctx)
		err := s.collection.Indexes().DropOne(limited, name)
		cancel()
		if err != nil {
			return s.fail(ctx, "drop the index "+name+" of", err)
		}
	}
	return nil
}

// makeIndexes builds indexes and waits until they serve.
func (s *store) makeIndexes(ctx context.Context, list []wanted) error {
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
	limited, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	_, err := s.collection.Indexes().CreateMany(limited, models)
	return s.fail(ctx, "make the indexes of", err)
}
