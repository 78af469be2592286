package store

import (
	"bytes"
	"slices"
	"time"

	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store/access"
	"belfry/pkg/store/driver"
)

// events makes the events and the announcements of a store.
type events struct {
	store string
	rules *access.Rules
	now   func() time.Time
	// fields that an event keeps however large it is: mapped, and the owner, on which a cascade depends
	carried []string
	// fields on which copies depend, in this object or others, and references: an event says which of them have changed
	copied   []string
	binaries bool      // an event says which properties hold binaries
	live     Announcer // nil: no announcements
}

func newEvents(o *Options, rules *access.Rules, x *indexing) *events {
	e := &events{
		store: o.Name, rules: rules, now: o.Now, carried: slices.Clone(x.mapped), copied: o.copied(),
		binaries: o.IndexBinaries, live: o.Announce,
	}
	if owner := rules.Owner(); owner != "" {
		e.carried = append(e.carried, owner)
	}
	if o.NoEvents {
		e.live = nil
	}
	return e
}

// copied returns the fields on which copies depend: those that are copied, and the references of copies. A reference
// that a deletion clears, or by which it deletes the object, is among them.
func (o *Options) copied() []string {
	all := slices.Clone(o.CopiedFrom)
	for _, r := range o.References {
		if (r.OnDelete == OnDeleteClear || r.OnDelete == OnDeleteCascade) && !slices.Contains(all, r.Field) {
			all = append(all, r.Field)
		}
	}
	for i := range o.Copies {
		if reference := o.Copies[i].Reference; !slices.Contains(all, reference) {
			all = append(all, reference)
		}
	}
	return all
}

// envelope makes the event of a write. body is the object after it.
func (m *events) envelope(call Call, w *write, now time.Time, revision uint64, body []byte) *event.Envelope {
	e := &event.Envelope{
		ID: object.NewUUID(), Event: w.name, Time: object.FormatTime(now), Store: m.store, UUID: w.uuid,
		Revision: revision, Actor: call.Actor, Origin: call.Origin, Ctx: call.Ctx,
	}
	if body == nil {
		body = w.base.Body // a deletion carries the last state
	}
	e.Object = m.rules.Visible(body)
	if w.array != "" { // the object is not whole
		e.Object, e.ObjectOmitted, e.PreviousOmitted = nil, true, true
		e.Arrays = changedEntries(w)
	}
	if m.binaries {
		e.Binaries = object.Field(body, BinariesField)
	}
	if w.stored != nil {
		e.Previous = m.previous(w.stored, w.next)
		for _, name := range m.copied {
			if !bytes.Equal(w.stored[name], w.next[name]) {
				e.Changed = append(e.Changed, name)
			}
		}
		e.Added = m.added(w.stored, w.next)
	}
	return e
}

// added returns the names of the fields that an update added, without those that never leave the server.
func (m *events) added(former, next object.Object) (names []string) {
	for name := range next {
		if _, had := former[name]; !had && !m.rules.Hidden(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// previous returns the former values of the fields that changed, without those
// that never leave the server.
func (m *events) previous(former, next object.Object) object.Object {
	changed := object.Object{}
	for name, value := range former {
		if !m.rules.Hidden(name) && !bytes.Equal(value, next[name]) {
			changed[name] = value
		}
	}
	return changed
}

// pending encodes an event for its record.
func (m *events) pending(e *event.Envelope) driver.Event {
	return driver.Event{ID: e.ID, Subject: event.Subject(e.Event, e.Store, e.UUID), Payload: m.encode(e)}
}

// encode encodes an event within event.MaxSize: first the object and the entries are left out,
// then the largest previous values. The mapping worker needs the keys of
// mappings, so they stay; for a deletion they move to the previous values.
func (m *events) encode(e *event.Envelope) []byte {
	if data, fits := encodeWithin(e); fits {
		return data
	}
	if e.Event == event.StoreDeleted {
		e.Previous = object.Object{}
		for _, key := range m.carried {
			if value := object.Field(e.Object, key); value != nil {
				e.Previous[key] = value
			}
		}
	}
	e.Object, e.ObjectOmitted, e.Added, e.Arrays = nil, true, nil, nil
	names := e.Previous.Names()
	slices.SortStableFunc(names, func(a, b string) int { return len(e.Previous[b]) - len(e.Previous[a]) })
	for _, name := range names {
		if data, fits := encodeWithin(e); fits {
			return data
		}
		if !slices.Contains(m.carried, name) {
			delete(e.Previous, name)
			e.PreviousOmitted = true
		}
	}
	return e.Append(nil)
}

// encodeWithin encodes an event, and reports whether it is within event.MaxSize. One with an array that is many times
// as large is not encoded to find that out.
func encodeWithin(e *event.Envelope) (data []byte, fits bool) {
	least := len(e.Object)
	for _, value := range e.Previous {
		least += len(value)
	}
	for _, entries := range e.Arrays {
		least += entries.Size()
	}
	if least > event.MaxSize {
		return nil, false
	}
	data = e.Append(make([]byte, 0, least+512+32*len(e.Previous)))
	return data, len(data) <= event.MaxSize
}

// announces reports whether an announcement may have a subscriber.
func (m *events) announces(name event.Name) bool {
	return m.live != nil && m.live.HasInterest(name)
}

// announceWrite announces a write before it is made.
func (m *events) announceWrite(call Call, name event.Name, w *write) {
	if !m.announces(name) {
		return
	}
	w.fresh = false // others know the uuid
	body := w.base.Body
	if w.next != nil {
		body = w.next.Encode()
	}
	m.announce(call, name, w.uuid, w.base.Revision, body)
}

// announce publishes an announcement about an object at a revision.
func (m *events) announce(call Call, name event.Name, uuid string, revision uint64, body []byte) {
	m.live.Live(name, m.encode(&event.Envelope{
		ID: object.NewUUID(), Event: name, Time: object.FormatTime(m.now()), Store: m.store, UUID: uuid,
		Revision: revision, Actor: call.Actor, Origin: call.Origin, Ctx: call.Ctx, Object: m.rules.Visible(body),
	}))
}
