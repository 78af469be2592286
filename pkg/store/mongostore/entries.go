package mongostore

import (
	"bytes"
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"belfry/pkg/store/chunk"
	"belfry/pkg/store/driver"
)

var _ driver.EntryStore = (*store)(nil)

// GetEntries implements driver.EntryStore. Which chunks it needs depends on how many there are: unless it knows that,
// it reads the record without chunks first, and then with those. Each read is of one document, and so of one revision.
func (s *store) GetEntries(ctx context.Context, uuid, array string,
	uuids []string) (r driver.Record, entries *driver.Entries, found bool, err error) {
	doc, kept, err := bodies{s}.findChunks(ctx, s.collection, bson.D{{Key: idField, Value: uuid}},
		arrayID{uuid, array}, uuids, bodies{s}.withoutChunks())
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
	r, err = bodies{s}.decodeHead(doc)
	if err != nil {
		return r, nil, false, err
	}
	r.Body, r.InChunks = bytes.Clone(kept.head), true
	if entries, err = a.Some(uuids, kept.read(array)); err != nil {
		return r, nil, false, bodies{s}.errDamaged(doc, err)
	}
	s.recent.keep(arrayID{uuid, array}, a.Chunks, doc)
	return r, entries, true, nil
}

// withoutChunks is the projection of a record without what GetEntries does not need. It has the whole body of a record
// that is not in chunks, which is then read at once.
func (s bodies) withoutChunks() bson.D {
	fields := bson.D{{Key: chunksPath, Value: 0}, {Key: eventsField, Value: 0}}
	for _, ix := range s.indexes {
		fields = append(fields, bson.E{Key: keyField(ix), Value: 0})
	}
	return fields
}

// withChunks is the projection of a record whose array has so many chunks, with those that entries are in.
func withChunks(array string, chunks int, uuids []string) bson.D {
	fields := bson.D{{Key: revisionField, Value: 1}, {Key: tombstoneField, Value: 1}, {Key: ownerField, Value: 1},
		{Key: headPath, Value: 1}, {Key: arraysPath, Value: 1}}
	a, wanted := chunk.Array{Chunks: chunks}, map[int]bool{}
	for _, uuid := range uuids {
		if n := a.Of(uuid); !wanted[n] {
			wanted[n] = true
			fields = append(fields, bson.E{Key: chunkPath(array, n), Value: 1})
		}
	}
	return fields
}

// findChunks reads the document that matches a filter, with the chunks of an array that entries are in. The other
// projection is for a document whose number of chunks is not known. doc is nil if no document matches. kept is nil if
// the body is not in chunks. It reads again only if the number of chunks is not the one that it knew.
func (s bodies) findChunks(ctx context.Context, from *mongo.Collection, filter bson.D, id arrayID, uuids []string,
	other bson.D) (doc bson.Raw, kept *inChunks, err error) {
	for chunks := s.recent.chunks(id); ; {
		projection := other
		if chunks > 0 {
			projection = withChunks(id.array, chunks, uuids)
		}
		if doc, err = s.findOne(ctx, from, filter, projection); err != nil || doc == nil {
			return nil, nil, err
		}
		if kept, err = s.chunksIn(doc); err != nil {
			return nil, nil, err
		}
		var a *chunk.Array
		if kept != nil {
			a = chunk.Find(kept.arrays, id.array)
		}
		switch {
		case kept == nil && (chunks == 0 || !doc.Lookup(tombstoneField).IsZero()):
			return doc, nil, nil
		case kept == nil:
			chunks = 0
		case a == nil || a.Chunks == chunks || len(uuids) == 0:
			return doc, kept, nil
		default:
			chunks = a.Chunks
		}
	}
}

// knownChunks is findChunks for a write of what GetEntries has read before, without a request; kept is nil if that is
// no longer known.
func (s bodies) knownChunks(w *driver.Write, uuids []string) (doc bson.Raw, kept *inChunks, err error) {
	doc = s.recent.take(arrayID{w.UUID, w.Array})
	if text, _ := doc.Lookup(revisionField).StringValueOK(); text != revisionText(w.IfRevision) {
		return nil, nil, nil
	}
	if kept, err = s.chunksIn(doc); err != nil || kept == nil {
		return nil, nil, err
	}
	a, read := chunk.Find(kept.arrays, w.Array), kept.read(w.Array)
	for _, uuid := range uuids {
		if _, err := read(a.Of(uuid)); err != nil {
			return nil, nil, nil //nolint:nilerr // it was not read before
		}
	}
	return doc, kept, nil
}
