package mongostore

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// The fields of a document. See the package comment.
const (
	idField        = "_id"
	revisionField  = "r"
	bodyField      = "b"
	tombstoneField = "t"
	ownerField     = "o"
	eventsField    = "e"
	countField     = "n"
	pendingField   = "p"

	// Of an event.
	eventIDField = "i"
	subjectField = "s"
	payloadField = "d"
)

// recordFields returns the projection of a record and another field.
func recordFields(other string) bson.D {
	return bson.D{{Key: revisionField, Value: 1}, {Key: bodyField, Value: 1}, {Key: tombstoneField, Value: 1},
		{Key: ownerField, Value: 1}, {Key: other, Value: 1}}
}

// revisionText returns a revision as text with the same order.
func revisionText(revision uint64) string { return fmt.Sprintf("%020d", revision) }

func eventPath(revision uint64) string { return eventsField + "." + revisionText(revision) }

// binary returns bytes as a value; nil becomes an empty one.
func binary(data []byte) bson.Binary {
	if data == nil {
		data = []byte{}
	}
	return bson.Binary{Data: data}
}

func exists(yes bool) bson.D { return bson.D{{Key: "$exists", Value: yes}} }

// fields returns the fields that a write sets and unsets, without its body and its events.
func (s *store) fields(w *driver.Write) (set, unset bson.D, err error) {
	if set, unset, err = s.updateKeys(w.UUID, w.Keys); err != nil {
		return nil, nil, err
	}
	set = append(set, bson.E{Key: revisionField, Value: revisionText(w.Revision)})
	if w.Event.ID != "" {
		set = append(set, bson.E{Key: pendingField, Value: w.UUID})
	}
	if w.Body == nil {
		set = append(set, bson.E{Key: tombstoneField, Value: revisionText(w.Revision)})
	} else {
		unset = append(unset, bson.E{Key: tombstoneField, Value: ""})
	}
	if w.Body == nil && w.Owner != "" {
		set = append(set, bson.E{Key: ownerField, Value: w.Owner})
	} else {
		unset = append(unset, bson.E{Key: ownerField, Value: ""})
	}
	return set, unset, nil
}

// updateOf returns the update of an existing document that makes a write.
func (s *store) updateOf(w *driver.Write, body bodyChange) (bson.D, error) {
	set, unset, err := s.fields(w)
	if err != nil {
		return nil, err
	}
	set, unset = append(set, body.set...), append(unset, body.unset...)
	events := w.Events()
	for i := range events {
		set = append(set, bson.E{Key: eventPath(events[i].Revision), Value: eventValue(&events[i])})
	}
	change := bson.D{{Key: "$set", Value: set}, {Key: "$unset", Value: unset}}
	if len(events) > 0 {
		change = append(change, bson.E{Key: "$inc", Value: bson.D{{Key: countField, Value: len(events)}}})
	}
	return change, nil
}

// document returns the document that a create inserts.
func (s *store) document(w *driver.Write) (bson.D, error) {
	set, _, err := s.fields(w)
	if err != nil {
		return nil, err
	}
	doc := append(bson.D{{Key: idField, Value: w.UUID}}, set...)
	if w.Body != nil {
		doc = append(doc, bson.E{Key: bodyField, Value: bodies{s}.newBody(w.Body)})
	}
	events := w.Events()
	if len(events) == 0 {
		return doc, nil
	}
	waiting := make(bson.D, len(events))
	for i := range events {
		waiting[i] = bson.E{Key: revisionText(events[i].Revision), Value: eventValue(&events[i])}
	}
	return append(doc, bson.E{Key: eventsField, Value: waiting}, bson.E{Key: countField, Value: len(events)}), nil
}

func eventValue(e *driver.Pending) bson.D {
	return bson.D{
		{Key: eventIDField, Value: e.ID},
		{Key: subjectField, Value: e.Subject},
		{Key: payloadField, Value: binary(e.Payload)},
	}
}

// updateKeys is the part of an update that gives a record its keys, and removes those it
// has no more.
func (s *store) updateKeys(uuid string, keys []driver.Key) (set, unset bson.D, err error) {
	texts := make(map[string][]string)
	for _, key := range keys {
		ix, ok := s.indexes[key.Index]
		if !ok || len(key.Parts) != ix.Parts {
			return nil, nil, errs.New(errs.Internal,
				"mongostore: a key with %d parts for the index %q of the store %s, which has %d",
				len(key.Parts), key.Index, s.name, ix.Parts)
		}
		text := encodeParts(key.Parts)
		if !ix.Multi {
			text += uuid
		}
		texts[key.Index] = append(texts[key.Index], text)
	}
	for name, ix := range s.indexes {
		list := texts[name]
		slices.Sort(list)
		list = slices.Compact(list)
		switch {
		case len(list) == 0:
			unset = append(unset, bson.E{Key: keyField(ix), Value: ""})
		case len(list) == 1 && !ix.Multi:
			set = append(set, bson.E{Key: keyField(ix), Value: list[0]})
		default:
			set = append(set, bson.E{Key: keyField(ix), Value: list})
		}
	}
	return set, unset, nil
}

// decodeRecord decodes a document.
func (s *store) decodeRecord(doc bson.Raw) (driver.Record, error) {
	r, err := bodies{s}.decodeHead(doc)
	if err != nil || r.Deleted {
		return r, err
	}
	if _, body, ok := doc.Lookup(bodyField).BinaryOK(); ok {
		r.Body = append([]byte{}, body...)
		return r, nil
	}
	kept, err := bodies{s}.chunksIn(doc)
	switch {
	case err != nil:
		return driver.Record{}, err
	case kept == nil:
		return driver.Record{}, s.errForeign(doc)
	}
	r.InChunks = true
	r.Body, err = kept.body()
	return r, bodies{s}.errDamaged(doc, err)
}

// decodeHead decodes what a document has of a record except its body.
func (s bodies) decodeHead(doc bson.Raw) (r driver.Record, err error) {
	uuid, ok := doc.Lookup(idField).StringValueOK()
	text, ok2 := doc.Lookup(revisionField).StringValueOK()
	revision, err := strconv.ParseUint(text, 10, 64)
	if !ok || !ok2 || err != nil {
		return r, s.errForeign(doc)
	}
	r = driver.Record{UUID: uuid, Revision: revision, Deleted: !doc.Lookup(tombstoneField).IsZero()}
	if r.Deleted {
		r.Owner, _ = doc.Lookup(ownerField).StringValueOK()
	}
	return r, nil
}

// decodeEvents decodes the pending events of a document, in the order of their
// revisions. The server does not keep the fields in this order.
func (s *store) decodeEvents(doc bson.Raw) ([]driver.Pending, error) {
	uuid, ok := doc.Lookup(idField).StringValueOK()
	if !ok {
		return nil, s.errForeign(doc)
	}
	waiting, ok := doc.Lookup(eventsField).DocumentOK()
	if !ok {
		return nil, nil
	}
	elements, err := waiting.Elements()
	if err != nil {
		return nil, s.errForeign(doc)
	}
	events := make([]driver.Pending, len(elements))
	for i, element := range elements {
		revision, err := strconv.ParseUint(element.Key(), 10, 64)
		event, ok := element.Value().DocumentOK()
		if err != nil || !ok {
			return nil, s.errForeign(doc)
		}
		id, ok1 := event.Lookup(eventIDField).StringValueOK()
		subject, ok2 := event.Lookup(subjectField).StringValueOK()
		_, payload, ok3 := event.Lookup(payloadField).BinaryOK()
		if !ok1 || !ok2 || !ok3 {
			return nil, s.errForeign(doc)
		}
		events[i] = driver.Pending{
			Event: driver.Event{ID: id, Subject: subject, Payload: bytes.Clone(payload)},
			UUID:  uuid, Revision: revision,
		}
	}
	slices.SortFunc(events, func(a, b driver.Pending) int { return cmp.Compare(a.Revision, b.Revision) })
	return events, nil
}

// errForeign is the error for a document that this package did not write.
func (s *store) errForeign(doc bson.Raw) error {
	return errs.New(errs.Internal,
		"the collection %s of %s has a document with the _id %s that belfry or this version of it did not write",
		s.collection.Name(), s.b.address, doc.Lookup(idField))
}
