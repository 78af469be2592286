package mongostore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/mongostore"
	"belfry/test/backing"
)

// administrator is someone else who uses the database.
func administrator(t *testing.T, url string) *mongo.Database {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(url))
	must(t, err)
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) })
	return client.Database("belfry")
}

// indexNames are the indexes of a collection.
func indexNames(t *testing.T, c *mongo.Collection) map[string]bool {
	t.Helper()
	list, err := c.Indexes().ListSpecifications(t.Context())
	must(t, err)
	names := make(map[string]bool)
	for _, ix := range list {
		names[ix.Name] = true
	}
	return names
}

// TestInvalidOptionsAreRefused: the error says what is wrong with a URL, and contains nothing of it.
func TestInvalidOptionsAreRefused(t *testing.T) {
	for name, o := range map[string]mongostore.Options{
		"no database":  {URL: "mongodb://127.0.0.1"},
		"no scheme":    {URL: "127.0.0.1", Database: "belfry"},
		"other scheme": {URL: "http://user:" + secret + "@127.0.0.1", Database: "belfry"},
		"character":    {URL: "mongodb://user:" + secret + "/@127.0.0.1", Database: "belfry"},
		"percent":      {URL: "mongodb://user:" + secret + "%@127.0.0.1", Database: "belfry"},
		"option": {URL: "mongodb://user:" + secret + "@127.0.0.1/?maxPoolSize=" + secret,
			Database: "belfry"},
		"other mechanism": {URL: "mongodb://user:" + secret + "@127.0.0.1/?authMechanism=" + secret,
			Database: "belfry"},
		"two that exclude": {URL: "mongodb://user:" + secret + "@127.0.0.1,127.0.0.2/?directConnection=true",
			Database: "belfry"},
		"nothing but a URL": {URL: "mongodb://", Database: "belfry"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := mongostore.Open(t.Context(), o)
			wantKind(t, err, errs.Invalid)
		})
	}
}

// TestRefusedPasswordIsReported: a refused user is distinguished from an unavailable
// server. This server has no users at all.
func TestRefusedPasswordIsReported(t *testing.T) {
	server := backing.StartMongo(t)
	b := open(t, "mongodb://someone:"+secret+"@"+server.Address+"/?authMechanism=SCRAM-SHA-256")
	if e := wantKind(t, b.Ping(t.Context()), errs.Internal); !strings.Contains(e.Message, "refuses the user") {
		t.Errorf("the message %q doesn't name the user", e.Message)
	}
}

// TestHarmfulIndexesAreRefused: an index that would keep objects from being written or
// found is refused by name; one that does no harm stays.
func TestHarmfulIndexesAreRefused(t *testing.T) {
	url := backing.Mongo(t)
	db := administrator(t, url)
	b := open(t, url)
	for name, model := range map[string]mongo.IndexModel{
		"theirs":             {Keys: bson.D{{Key: "x", Value: 1}}, Options: options.Index().SetUnique(true)},
		"belfry.pending":     {Keys: bson.D{{Key: "x", Value: 1}}},
		"belfry.k:tag:1m":    {Keys: bson.D{{Key: "k:tag:1m", Value: -1}, {Key: "_id", Value: 1}}},
		"belfry.tombstones":  {Keys: bson.D{{Key: "t", Value: 1}, {Key: "_id", Value: 1}}},
		"belfry.k:author:1m": {Keys: bson.D{{Key: "k:author:1m", Value: 1}}, Options: options.Index().SetUnique(true)},
	} {
		t.Run(name, func(t *testing.T) {
			collection := db.Collection("Books")
			must(t, collection.Drop(t.Context()))
			if model.Options == nil {
				model.Options = options.Index()
			}
			model.Options.SetName(name)
			_, err := collection.Indexes().CreateOne(t.Context(), model)
			must(t, err)
			_, err = b.Open(t.Context(), books())
			if e := wantKind(t, err, errs.Internal); !strings.Contains(e.Message, name) ||
				!strings.Contains(e.Message, "Books") {
				t.Errorf("the message %q doesn't name the index and its collection", e.Message)
			}
			must(t, collection.Indexes().DropOne(t.Context(), name))
			openBooks(t, b)
		})
	}
	_, err := db.Collection("Books").Indexes().CreateOne(t.Context(),
		mongo.IndexModel{Keys: bson.D{{Key: "x", Value: 1}}})
	must(t, err)
	openBooks(t, b)
	if names := indexNames(t, db.Collection("Books")); len(names) != 5 || !names["x_1"] {
		t.Errorf("the indexes are %v, want those of belfry, that of _id and x_1", names)
	}
}

// TestCappedCollectionIsRefused: a collection that forgets documents is refused.
func TestCappedCollectionIsRefused(t *testing.T) {
	url := backing.Mongo(t)
	must(t, administrator(t, url).CreateCollection(t.Context(), "Books",
		options.CreateCollection().SetCapped(true).SetSizeInBytes(1<<20)))
	_, err := open(t, url).Open(t.Context(), books())
	wantKind(t, err, errs.Internal)
}

// TestNewerLayoutIsRefused: a database whose documents a later version has written in another way is not touched. One
// without a layout, of an earlier release, is used and gets one.
func TestNewerLayoutIsRefused(t *testing.T) {
	url := backing.Mongo(t)
	layouts := administrator(t, url).Collection("belfry.layout")
	openBooks(t, open(t, url))
	must(t, layouts.Drop(t.Context()))
	openBooks(t, open(t, url))
	changed, err := layouts.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: "layout"}, {Key: "version", Value: 1}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "version", Value: 2}}}})
	must(t, err)
	if changed.ModifiedCount != 1 {
		t.Fatal("the database has no layout")
	}
	_, err = open(t, url).Open(t.Context(), books())
	if e := wantKind(t, err, errs.Internal); !strings.Contains(e.Message, "layout 2") ||
		!strings.Contains(e.Message, "database belfry") {
		t.Errorf("the message %q doesn't name the layout and the database", e.Message)
	}
}

// TestForeignDocumentIsNamed: a document that belfry did not write is named by its _id.
func TestForeignDocumentIsNamed(t *testing.T) {
	url := backing.Mongo(t)
	s := openBooks(t, open(t, url))
	_, err := administrator(t, url).Collection("Books").InsertOne(t.Context(),
		bson.D{{Key: "_id", Value: "stray"}, {Key: "b", Value: 1}})
	must(t, err)
	_, _, err = s.Get(t.Context(), "stray")
	if e := wantKind(t, err, errs.Internal); !strings.Contains(e.Message, "stray") {
		t.Errorf("the message %q doesn't name the document", e.Message)
	}
}

// TestIndexesAreLimited: a store has as many indexes as a collection can; one more is
// refused before anything is made.
func TestIndexesAreLimited(t *testing.T) {
	b := open(t, backing.Mongo(t))
	spec := driver.Spec{Name: "Books", Keys: func([]byte) []driver.Key { return nil }}
	for i := range 61 {
		spec.Indexes = append(spec.Indexes, driver.Index{Name: fmt.Sprint("by", i), Parts: 1 + i%4, Multi: i%3 == 0})
	}
	s, err := b.Open(t.Context(), spec)
	must(t, err)
	w := driver.Write{UUID: "a", Revision: 1, Body: []byte("{}")}
	for _, ix := range spec.Indexes {
		w.Keys = append(w.Keys,
			driver.Key{Index: ix.Name, Parts: [][]byte{[]byte("x"), []byte("y"), []byte("z"), nil}[:ix.Parts]})
	}
	must(t, s.Put(t.Context(), w))
	for i, ix := range spec.Indexes {
		page, err := s.Query(t.Context(), driver.Query{Index: ix.Name, Equal: w.Keys[i].Parts, Limit: 1})
		must(t, err)
		if len(page.Records) != 1 {
			t.Errorf("the index %s found %d records, want one", ix.Name, len(page.Records))
		}
	}
	spec.Indexes = append(spec.Indexes, driver.Index{Name: "one more", Parts: 1})
	_, err = b.Open(t.Context(), spec)
	wantKind(t, err, errs.Invalid)
}

// TestInterruptedFillIsRepeated: an index is there only once it is complete. A start that
// failed in between is made up for by the next.
func TestInterruptedFillIsRepeated(t *testing.T) {
	const n = 120
	for _, command := range []string{"update", "createIndexes"} {
		t.Run(command, func(t *testing.T) {
			p := newProxy(t, backing.StartMongo(t).Address)
			b := open(t, "mongodb://"+p.address)
			plain, err := b.Open(t.Context(), driver.Spec{Name: "Books"})
			must(t, err)
			for i := range n {
				w := write(fmt.Sprintf("n%03d", i), 0, uint64(i+1), "x")
				w.Keys = nil
				must(t, plain.Put(t.Context(), w))
			}
			// An update is of fifty records.
			p.faults(func(name string) fault {
				return fault{lost: name == command && (name != "update" || p.count[name] == 2)}
			})
			_, err = b.Open(t.Context(), books())
			wantKind(t, err, errs.Unavailable)
			p.faults(nil)
			must(t, plain.Put(t.Context(),
				driver.Write{UUID: "n000", IfRevision: 1, Revision: 1000, Event: driver.Event{ID: "gone"}}))
			page, err := openBooks(t, b).Query(t.Context(), queryTag("x"))
			must(t, err)
			if len(page.Records) != n-1 {
				t.Errorf("the index found %d records, want %d", len(page.Records), n-1)
			}
		})
	}
}

// TestStoreNamesMakeDistinctCollections: any name of a store makes a collection of its own, and none that of the
// layout.
func TestStoreNamesMakeDistinctCollections(t *testing.T) {
	url := backing.Mongo(t)
	b := open(t, url)
	for _, name := range []string{"Books", "system.views", "a$b", "Bücher", "a b", "%2e", "belfry.layout"} {
		spec := books()
		spec.Name = name
		s, err := b.Open(t.Context(), spec)
		must(t, err)
		must(t, s.Put(t.Context(), write("a", 0, 1, name)))
	}
	names, err := administrator(t, url).ListCollectionNames(t.Context(), bson.D{})
	must(t, err)
	for _, name := range names {
		if strings.ContainsAny(name, ".$ ü") && name != "belfry.layout" {
			t.Errorf("a collection is called %q", name)
		}
	}
	if len(names) != 8 {
		t.Errorf("the collections are %q, want seven and that of the layout", names)
	}
}
