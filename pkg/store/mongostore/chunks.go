package mongostore

import (
	"context"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"belfry/pkg/errs"
	"belfry/pkg/store/chunk"
	"belfry/pkg/store/driver"
)

// The fields of a body in chunks. See the package comment.
const (
	headField   = "h"
	arraysField = "m"
	chunksField = "c"

	headPath   = bodyField + "." + headField
	arraysPath = bodyField + "." + arraysField
	chunksPath = bodyField + "." + chunksField
)

// maxInChunks is the maximum size of a body in chunks: a change of entries then leaves it below the size of a document.
const maxInChunks = maxWrite - 1<<20

// Chunks take at most so many bytes beside those of entries.
const (
	perEntry = 8  // its number and its length
	perChunk = 16 // the type, the name and the length of its field
)

// bodies is the part of a store that reads and writes bodies in chunks.
type bodies struct{ *store }

// inChunks is a body in chunks as it is kept, or a part of it.
type inChunks struct {
	head   []byte
	arrays []chunk.Array
	chunks bson.Raw // by array, then by number
}

// chunksIn returns what a document has of a body in chunks; nil: it has no such body.
func (s bodies) chunksIn(doc bson.Raw) (*inChunks, error) {
	body, ok := doc.Lookup(bodyField).DocumentOK()
	if !ok {
		return nil, nil
	}
	_, encoded, ok := body.Lookup(arraysField).BinaryOK()
	if !ok {
		return nil, s.errForeign(doc)
	}
	kept := &inChunks{}
	_, kept.head, _ = body.Lookup(headField).BinaryOK()
	kept.chunks, _ = body.Lookup(chunksField).DocumentOK()
	var err error
	kept.arrays, err = chunk.Decode(encoded)
	return kept, s.errDamaged(doc, err)
}

// errDamaged says which record an error of package chunk is about.
func (s bodies) errDamaged(doc bson.Raw, err error) error {
	return errs.Wrap(err, errs.Internal, "the collection %s of %s has a document with the _id %s: %v",
		s.collection.Name(), s.b.address, doc.Lookup(idField), err)
}

// errChunk is the error of a chunk that is missing or of another type.
func errChunk(array string) error {
	return errs.New(errs.Internal, "a chunk of the array %s is missing: the data is damaged; restore a backup", array)
}

// read is the chunk.Reader of an array.
func (k *inChunks) read(array string) chunk.Reader {
	return func(n int) ([]byte, error) {
		_, data, ok := k.chunks.Lookup(escape(array), strconv.Itoa(n)).BinaryOK()
		if !ok {
			return nil, errChunk(array)
		}
		return data, nil
	}
}

// contents returns the arrays with all their chunks.
func (k *inChunks) contents() ([]chunk.Content, error) {
	contents := make([]chunk.Content, len(k.arrays))
	for i, a := range k.arrays {
		chunks, _ := k.chunks.Lookup(escape(a.Name)).DocumentOK()
		elements, err := chunks.Elements()
		if err != nil || len(elements) != a.Chunks {
			return nil, errChunk(a.Name)
		}
		contents[i] = chunk.Content{Array: a, Data: make([][]byte, a.Chunks)}
		for _, e := range elements { // the server does not keep them in their order
			n, err := strconv.Atoi(e.Key())
			_, data, ok := e.Value().BinaryOK()
			if err != nil || !ok || n < 0 || n >= a.Chunks {
				return nil, errChunk(a.Name)
			}
			contents[i].Data[n] = data
		}
	}
	return contents, nil
}

// body returns the body as it is without chunks.
func (k *inChunks) body() ([]byte, error) {
	contents, err := k.contents()
	if err != nil {
		return nil, err
	}
	return chunk.Join(k.head, contents)
}

// fits reports whether a body can be in chunks: they take more than the body alone.
func fits(head []byte, arrays []chunk.Array) bool {
	size := len(head)
	for _, a := range arrays {
		size += a.Bytes + a.Count*perEntry + a.Chunks*perChunk
	}
	return size <= maxInChunks
}

// split returns a body as it is kept. before are the arrays that the record has in chunks.
func split(arrays chunk.Arrays, body []byte, before []chunk.Content) (head []byte, contents []chunk.Content) {
	head, contents = arrays.Split(body, before)
	if len(contents) > 0 && !fits(head, chunk.Described(contents)) {
		return body, nil
	}
	return head, contents
}

// bodyValue returns the field of a body.
func bodyValue(head []byte, contents []chunk.Content) any {
	if len(contents) == 0 {
		return binary(head)
	}
	chunks := make(bson.D, len(contents))
	for i := range contents {
		chunks[i] = bson.E{Key: escape(contents[i].Name), Value: chunksValue(&contents[i])}
	}
	return bson.D{{Key: headField, Value: binary(head)},
		{Key: arraysField, Value: binary(chunk.Encode(chunk.Described(contents)))}, {Key: chunksField, Value: chunks}}
}

func chunksValue(c *chunk.Content) bson.D {
	value := make(bson.D, len(c.Data))
	for n, data := range c.Data {
		value[n] = bson.E{Key: strconv.Itoa(n), Value: binary(data)}
	}
	return value
}

func arrayPath(array string) string { return chunksPath + "." + escape(array) }

func chunkPath(array string, n int) string { return arrayPath(array) + "." + strconv.Itoa(n) }

// bodyChange is what an update does to the field of the body.
type bodyChange struct{ set, unset bson.D }

// setBody replaces the field as a whole.
func setBody(value any) bodyChange { return bodyChange{set: bson.D{{Key: bodyField, Value: value}}} }

// newBody returns the field of a body whose record is new.
func (s bodies) newBody(body []byte) any { return bodyValue(split(s.arrays, body, nil)) }

// bodyOver returns the change of the body that a create makes over a tombstone.
func (s bodies) bodyOver(w *driver.Write) bodyChange {
	if w.Body == nil {
		return bodyChange{unset: bson.D{{Key: bodyField, Value: ""}}}
	}
	return setBody(s.newBody(w.Body))
}

// setHead changes the fields of a body that is in chunks and stays so, except for the chunks.
func setHead(head []byte, arrays []chunk.Array) bodyChange {
	return bodyChange{set: bson.D{
		{Key: headPath, Value: binary(head)},
		{Key: arraysPath, Value: binary(chunk.Encode(arrays))},
	}}
}

// setChunks adds the chunks of an array that change.
func (c *bodyChange) setChunks(array string, chunks map[int][]byte) {
	for n, data := range chunks {
		c.set = append(c.set, bson.E{Key: chunkPath(array, n), Value: binary(data)})
	}
}

// bodyChange returns the change of the body that an update of a live record makes. It first reads the chunks of a
// record whose new body has a large array, at the revision that the update requires. An array that has become smaller
// is whole, so that writes of small bodies don't read the record.
func (s bodies) bodyChange(ctx context.Context, w *driver.Write) (bodyChange, error) {
	switch {
	case w.Array != "":
		return s.changeEntries(ctx, w)
	case !s.arrays.HaveLarge(w.Body):
		return s.bodyOver(w), nil
	}
	doc, err := s.findOne(ctx, s.readLatest, atRevision(w),
		bson.D{{Key: arraysPath, Value: 1}, {Key: chunksPath, Value: 1}})
	if err != nil {
		return bodyChange{}, err
	}
	if doc == nil {
		return bodyChange{}, errMismatch()
	}
	kept, err := s.chunksIn(doc)
	if err != nil || kept == nil {
		return setBody(s.newBody(w.Body)), err
	}
	before, err := kept.contents()
	if err != nil {
		return bodyChange{}, s.errDamaged(doc, err)
	}
	head, after := split(s.arrays, w.Body, before)
	return changeOf(head, before, after), nil
}

// changeOf returns the change of a body in chunks to another one.
func changeOf(head []byte, before, after []chunk.Content) bodyChange {
	if len(after) == 0 {
		return setBody(binary(head))
	}
	was, is := chunk.Described(before), chunk.Described(after)
	change := setHead(head, is)
	for i := range after {
		a := &after[i]
		if former := chunk.Find(was, a.Name); former != nil && former.Chunks == a.Chunks {
			change.setChunks(a.Name, a.Changed(before))
		} else {
			change.set = append(change.set, bson.E{Key: arrayPath(a.Name), Value: chunksValue(a)})
		}
	}
	for i := range was {
		if chunk.Find(is, was[i].Name) == nil {
			change.unset = append(change.unset, bson.E{Key: arrayPath(was[i].Name), Value: ""})
		}
	}
	return change
}

// changeEntries returns the change of a body of which some entries change.
func (s bodies) changeEntries(ctx context.Context, w *driver.Write) (bodyChange, error) {
	uuids := make([]string, len(w.Entries))
	for i := range w.Entries {
		uuids[i] = w.Entries[i].UUID
	}
	doc, kept, err := s.knownChunks(w, uuids)
	if err == nil && kept == nil {
		doc, kept, err = s.findChunks(ctx, s.readLatest, atRevision(w), arrayID{w.UUID, w.Array}, uuids,
			bson.D{{Key: arraysPath, Value: 1}})
	}
	switch {
	case err != nil:
		return bodyChange{}, err
	case doc == nil:
		return bodyChange{}, errMismatch()
	case kept == nil || chunk.Find(kept.arrays, w.Array) == nil:
		return bodyChange{}, chunk.ErrWhole(w.UUID, w.Array)
	}
	return s.changed(doc, kept, w)
}

// changed returns the change of a body in chunks, of which the chunks were read that entries are in.
func (s bodies) changed(doc bson.Raw, kept *inChunks, w *driver.Write) (bodyChange, error) {
	a := chunk.Find(kept.arrays, w.Array)
	after, chunks, err := a.Change(w.Entries, kept.read(w.Array))
	if err != nil {
		return bodyChange{}, s.errDamaged(doc, err)
	}
	*a = after
	if err := chunk.Place(kept.arrays, w.Body); err != nil {
		return bodyChange{}, err
	}
	size := sizeOf(w)
	for i := range kept.arrays {
		size += kept.arrays[i].Bytes
	}
	if size > maxWrite {
		return bodyChange{}, errTooLarge(size)
	}
	change := setHead(w.Body, kept.arrays)
	change.setChunks(w.Array, chunks)
	return change, nil
}
