package store

import (
	"bytes"
	"slices"
	"time"

	"belfry/pkg/event"
	"belfry/pkg/object"
)

// envelope makes the event of a write. body is the object after it.
func (s *Store) envelope(call Call, w *write, now time.Time, revision uint64, body []byte) *event.Envelope {
	e := &event.Envelope{
		ID: object.NewUUID(), Event: w.name, Time: object.FormatTime(now), Store: s.opts.Name, UUID: w.uuid,
		Revision: revision, Actor: call.Actor, Origin: call.Origin, Ctx: call.Ctx,
	}
	if body == nil {
		body = w.base.Body // a deletion carries the last state
	}
	e.Object = s.rules.Visible(body)
	if s.opts.IndexBinaries {
		e.Binaries = object.Field(body, BinariesField)
	}
	if w.stored != nil {
		e.Previous = s.previous(w.stored, w.next)
	}
	return e
}

// previous returns the former values of the fields that changed, without those
// that never leave the server.
func (s *Store) previous(former, next object.Object) object.Object {
	changed := object.Object{}
	for name, value := range former {
		if !s.rules.Hidden(name) && !bytes.Equal(value, next[name]) {
			changed[name] = value
		}
	}
	return changed
}

// encode encodes an event within event.MaxSize: first the object is left out,
// then the largest previous values. The mapping worker needs the keys of
// mappings, so they stay; for a deletion they move to the previous values.
func (s *Store) encode(e *event.Envelope) []byte {
	if data, fits := encodeWithin(e); fits {
		return data
	}
	if e.Event == event.StoreDeleted {
		e.Previous = object.Object{}
		for _, key := range s.carried {
			if value := object.Field(e.Object, key); value != nil {
				e.Previous[key] = value
			}
		}
	}
	e.Object, e.ObjectOmitted = nil, true
	names := e.Previous.Names()
	slices.SortStableFunc(names, func(a, b string) int { return len(e.Previous[b]) - len(e.Previous[a]) })
	for _, name := range names {
		if data, fits := encodeWithin(e); fits {
			return data
		}
		if !slices.Contains(s.carried, name) {
			delete(e.Previous, name)
			e.PreviousOmitted = true
		}
	}
	return e.Append(nil)
}

// encodeWithin encodes an event, and reports whether it is within event.MaxSize. One with an array that is many times as large
// is not encoded to find that out.
func encodeWithin(e *event.Envelope) (data []byte, fits bool) {
	least := len(e.Object)
	for _, value := range e.Previous {
		least += len(value)
	}
	if least > event.MaxSize {
		return nil, false
	}
	data = e.Append(make([]byte, 0, least+512+32*len(e.Previous)))
	return data, len(data) <= event.MaxSize
}

// announces reports whether an announcement may have a subscriber.
func (s *Store) announces(name event.Name) bool {
	return s.opts.Announce != nil && !s.opts.NoEvents && s.opts.Announce.HasInterest(name)
}

// announceWrite announces what is about to be written.
func (s *Store) announceWrite(call Call, name event.Name, w *write) {
	if !s.announces(name) {
		return
	}
	w.fresh = false // others know the uuid
	body := w.base.Body
	if w.next != nil {
		body = w.next.Encode()
	}
	s.announce(call, name, w.uuid, w.base.Revision, body)
}

// announce publishes an announcement about an object at a revision.
func (s *Store) announce(call Call, name event.Name, uuid string, revision uint64, body []byte) {
	s.opts.Announce.Live(name, s.encode(&event.Envelope{
		ID: object.NewUUID(), Event: name, Time: object.FormatTime(s.opts.Now()), Store: s.opts.Name, UUID: uuid,
		Revision: revision, Actor: call.Actor, Origin: call.Origin, Ctx: call.Ctx, Object: s.rules.Visible(body),
	}))
}
