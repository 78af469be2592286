package mongostore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"belfry/pkg/store/driver"
)

// The collection belfry.layout has a document for each store some of whose indexes are not complete:
//
//	_id       "building." and the name of the collection
//	building  the name of the field of each of these indexes, and the ID of its build
//
// An index is complete if the database has it, and it is not in this document. Its build gets another ID before the
// first write of each handle that does not list it.
const (
	buildingPrefix = "building."
	buildingField  = "building"
)

// reindexDocuments is the number of documents whose keys are updated together.
const reindexDocuments = 200

func (s *store) catalog() *mongo.Collection { return s.b.database.Collection(layoutCollection) }

func (s *store) catalogID() bson.E {
	return bson.E{Key: idField, Value: buildingPrefix + s.collection.Name()}
}

func buildPath(field string) string { return buildingField + "." + field }

// builds returns the IDs of the builds by the fields of their indexes, also of those that the handle does not list.
func (s *store) builds(ctx context.Context) (map[string]string, error) {
	limited, cancel := s.b.withTimeout(ctx)
	defer cancel()
	var found struct{ Building map[string]string }
	err := s.catalog().FindOne(limited, bson.D{s.catalogID()}).Decode(&found)
	if errors.Is(err, mongo.ErrNoDocuments) {
		err = nil
	}
	return found.Building, s.wrapError(ctx, "read the indexes of", err)
}

// updateBuilds changes the document of the builds if it meets the conditions, and reports whether it does.
func (s *store) updateBuilds(ctx context.Context, conditions, change bson.D, upsert bool) (done bool, err error) {
	limited, cancel := s.b.withTimeout(ctx)
	defer cancel()
	filter := append(bson.D{s.catalogID()}, conditions...)
	result, err := s.catalog().UpdateOne(limited, filter, change, options.UpdateOne().SetUpsert(upsert))
	if err != nil {
		return false, s.wrapError(ctx, "change the indexes of", err)
	}
	return result.MatchedCount+result.UpsertedCount > 0, nil
}

// newBuilds gives new IDs to the builds of indexes.
func (s *store) newBuilds(ctx context.Context, fields []string) error {
	if len(fields) == 0 {
		return nil
	}
	var set bson.D
	for _, field := range fields {
		set = append(set, bson.E{Key: buildPath(field), Value: bson.NewObjectID().Hex()})
	}
	change := bson.D{{Key: "$set", Value: set}}
	_, err := s.updateBuilds(ctx, nil, change, true)
	if duplicate(err) { // another process has inserted the document
		_, err = s.updateBuilds(ctx, nil, change, true)
	}
	return err
}

func duplicate(err error) bool {
	var server mongo.ServerError
	return errors.As(err, &server) && mongo.IsDuplicateKeyError(server)
}

// forgetBuilds removes the document of the builds.
func (s *store) forgetBuilds(ctx context.Context) error {
	limited, cancel := s.b.withTimeout(ctx)
	defer cancel()
	_, err := s.catalog().DeleteOne(limited, bson.D{s.catalogID()})
	return s.wrapError(ctx, "change the indexes of", err)
}

// beforeWrite makes the indexes incomplete that the handle does not list: its writes lack their keys.
func (s *store) beforeWrite(ctx context.Context) error {
	return s.first.Do(ctx, func() error {
		builds, err := s.builds(ctx)
		if err != nil {
			return err
		}
		present, err := s.presentIndexes(ctx)
		if err != nil {
			return err
		}
		return s.newBuilds(ctx, s.unlisted(builds, present))
	})
}

// unlisted returns the fields of the indexes for keys that the handle does not list.
func (s *store) unlisted(builds map[string]string, present map[string]bson.Raw) []string {
	fields := make(map[string]bool)
	for field := range builds {
		fields[field] = true
	}
	for name := range present {
		if strings.HasPrefix(name, keyIndexes) {
			fields[strings.TrimPrefix(name, indexPrefix)] = true
		}
	}
	for _, ix := range s.indexes {
		delete(fields, keyField(ix))
	}
	return slices.Sorted(maps.Keys(fields))
}

// Building implements driver.Indexes. It reads the builds first: an index without a build, which the database has when
// Building reads it afterwards, was complete in between.
func (s *store) Building(ctx context.Context) ([]driver.Build, error) {
	for {
		builds, err := s.builds(ctx)
		if err != nil {
			return nil, err
		}
		present, err := s.presentIndexes(ctx)
		if err != nil {
			return nil, err
		}
		var list []driver.Build
		var added []string
		for _, name := range slices.Sorted(maps.Keys(s.indexes)) {
			field := keyField(s.indexes[name])
			switch id := builds[field]; {
			case id != "":
				list = append(list, driver.Build{Index: name, ID: id})
			case present[indexPrefix+field] == nil:
				added = append(added, field)
			}
		}
		if len(added) == 0 {
			return list, nil
		}
		if err := s.newBuilds(ctx, added); err != nil {
			return nil, err
		}
	}
}

// Complete implements driver.Indexes. A crash between its two steps leaves an index that is being built. The database's
// index follows the keys of the documents, even if these are incomplete.
func (s *store) Complete(ctx context.Context, builds []driver.Build) error {
	list, ids, err := s.stillBuilt(ctx, builds)
	if err != nil || len(list) == 0 {
		return err
	}
	// FerretDB 1 crashes when it is to create several indexes that it has.
	present, err := s.presentIndexes(ctx)
	if err != nil {
		return err
	}
	if err := s.createIndexes(ctx, absent(present, list)); err != nil {
		return err
	}
	done, err := s.endBuilds(ctx, ids)
	if err != nil || done {
		return err
	}
	if list, _, err = s.stillBuilt(ctx, builds); err == nil && len(list) > 0 {
		err = driver.ErrBuildOver(builds[0])
	}
	return err
}

// stillBuilt returns those of the indexes that are not complete, with the IDs of their builds by field; errs.Mismatch
// when a build is over.
func (s *store) stillBuilt(ctx context.Context,
	builds []driver.Build) (list []wantedIndex, ids map[string]string, err error) {
	now, err := s.Building(ctx)
	if err != nil {
		return nil, nil, err
	}
	ids = make(map[string]string)
	for _, b := range builds {
		ix, mine := s.indexes[b.Index]
		at := slices.IndexFunc(now, func(other driver.Build) bool { return other.Index == b.Index })
		switch {
		case !mine || at >= 0 && now[at] != b:
			return nil, nil, driver.ErrBuildOver(b)
		case at >= 0:
			ids[keyField(ix)] = b.ID
		}
	}
	list = slices.DeleteFunc(indexesOf(s.indexes), func(w wantedIndex) bool { return ids[w.field] == "" })
	return list, ids, nil
}

// endBuilds removes builds, unless one of them has another ID meanwhile.
func (s *store) endBuilds(ctx context.Context, ids map[string]string) (done bool, err error) {
	var conditions, unset bson.D
	for field, id := range ids {
		path := buildPath(field)
		conditions, unset = append(conditions, bson.E{Key: path, Value: id}),
			append(unset, bson.E{Key: path, Value: ""})
	}
	return s.updateBuilds(ctx, conditions, bson.D{{Key: "$unset", Value: unset}}, false)
}

// Release implements driver.Indexes.
func (s *store) Release(ctx context.Context) error {
	builds, err := s.builds(ctx)
	if err != nil {
		return err
	}
	present, err := s.presentIndexes(ctx)
	if err != nil {
		return err
	}
	if err := s.dropIndexes(ctx, present, indexesOf(s.indexes)); err != nil {
		return err
	}
	ids := make(map[string]string)
	for _, field := range s.unlisted(builds, nil) {
		ids[field] = builds[field]
	}
	if len(ids) > 0 {
		_, err = s.endBuilds(ctx, ids)
	}
	return err
}

// Reindex implements driver.Indexes. The documents are read one after the other, so that few bodies are in memory. A
// record that is changed after it was read gets its keys from that write.
func (s *store) Reindex(ctx context.Context, uuids []string) error {
	if err := s.beforeWrite(ctx); err != nil {
		return err
	}
	for some := range slices.Chunk(uuids, reindexDocuments) {
		changes, err := s.rekeyed(ctx, some)
		if err == nil {
			err = s.bulkWrite(ctx, s.collection, changes)
		}
		if err != nil {
			return s.wrapError(ctx, "build an index of", err)
		}
	}
	return nil
}

// rekeyed returns the updates that write the keys of documents.
func (s *store) rekeyed(ctx context.Context, uuids []string) (changes []mongo.WriteModel, err error) {
	ctx, cancel := s.b.withTimeout(ctx)
	defer cancel()
	cursor, err := s.cursor(ctx, bson.D{{Key: idField, Value: bson.D{{Key: "$in", Value: uuids}}}},
		recordFields(idField), bson.D{{Key: idField, Value: 1}}, len(uuids))
	if err != nil {
		return nil, err
	}
	defer func() { _ = cursor.Close(ctx) }()
	for cursor.Next(ctx) {
		r, err := s.decodeRecord(cursor.Current)
		if err != nil {
			return nil, err
		}
		if r.Deleted {
			continue
		}
		var keys []driver.Key
		if s.computeKeys != nil { // else it has no indexes
			keys = s.computeKeys(r.Body)
		}
		set, unset, err := s.updateKeys(r.UUID, keys)
		if err != nil {
			return nil, err
		}
		var change bson.D
		if len(set) > 0 {
			change = append(change, bson.E{Key: "$set", Value: set})
		}
		if len(unset) > 0 {
			change = append(change, bson.E{Key: "$unset", Value: unset})
		}
		if len(change) == 0 {
			continue
		}
		same := bson.D{{Key: idField, Value: r.UUID}, {Key: revisionField, Value: revisionText(r.Revision)}}
		changes = append(changes, mongo.NewUpdateOneModel().SetFilter(same).SetUpdate(change))
	}
	return changes, cursor.Err()
}
