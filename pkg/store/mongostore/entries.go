package mongostore

import (
	"bytes"
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"belfry/pkg/store/chunk"
	"belfry/pkg/store/driver"
)

var _ driver.EntryStore = (*store)(nil)

// GetEntries implements driver.EntryStore. Which chunks it needs depends on how many there are: it reads the record
// without chunks first, and then with those. Each read is of one document, and so of one revision.
func (s *store) GetEntries(ctx context.Context, uuid, array string,
	uuids []string) (r driver.Record, entries *driver.Entries, found bool, err error) {
	doc, kept, err := s.findChunks(ctx, s.collection, bson.D{{Key: idField, Value: uuid}}, array, uuids,
		s.withoutChunks())
	if err != nil || doc == nil {
		return r, nil, false, err
	}
	if kept == nil {
		r, err = s.decodeRecord(doc)
		return r, nil, err == nil, err
	}
	a := chunk.Find(kept.arrays, array)
	if a == nil || a.Outgrown() || !fits(kept.head, kept.arrays) {
		r, found, err = s.Get(ctx, uuid)
		return r, nil, found, err
	}
	if r, err = s.decodeHead(doc); err != nil {
		return r, nil, false, err
	}
	r.Body, r.InChunks = bytes.Clone(kept.head), true
	entries, err = a.Some(uuids, kept.read(array))
	return r, entries, err == nil, s.errDamaged(doc, err)
}

// withoutChunks is the projection of a record without what GetEntries does not need. It has the whole body of a record
// that is not in chunks, which is then read at once.
func (s *store) withoutChunks() bson.D {
	fields := bson.D{{Key: chunksPath, Value: 0}, {Key: eventsField, Value: 0}}
	for _, ix := range s.indexes {
		fields = append(fields, bson.E{Key: keyField(ix), Value: 0})
	}
	return fields
}

// withChunks is the projection of a record whose array has so many chunks, with those that entries are in.
func withChunks(array string, chunks int, uuids []string) bson.D {
	fields := recordFields(headPath)
	fields = slices.DeleteFunc(fields, func(e bson.E) bool { return e.Key == bodyField })
	fields = append(fields, bson.E{Key: arraysPath, Value: 1})
	a := chunk.Array{Chunks: chunks}
	wanted := map[int]bool{}
	for _, uuid := range uuids {
		if n := a.Of(uuid); !wanted[n] {
			wanted[n] = true
			fields = append(fields, bson.E{Key: chunkPath(array, n), Value: 1})
		}
	}
	return fields
}

// findChunks reads the document that matches a filter: with the chunks of an array that entries are in, or by another
// projection if the array is not in chunks. doc is nil if there is none, and kept is nil if its body is not in chunks.
func (s *store) findChunks(ctx context.Context, from *mongo.Collection, filter bson.D, array string, uuids []string,
	other bson.D) (doc bson.Raw, kept *inChunks, err error) {
	projection, chunks := other, 0
	for {
		if doc, err = s.findOne(ctx, from, filter, projection); err != nil || doc == nil {
			return doc, nil, err
		}
		if kept, err = s.chunksIn(doc); err != nil {
			return doc, nil, err
		}
		if kept == nil {
			if chunks == 0 || !doc.Lookup(tombstoneField).IsZero() {
				return doc, nil, nil
			}
			projection, chunks = other, 0
			continue
		}
		a := chunk.Find(kept.arrays, array)
		if a == nil || len(uuids) == 0 || a.Chunks == chunks {
			return doc, kept, nil
		}
		projection, chunks = withChunks(array, a.Chunks, uuids), a.Chunks
	}
}
