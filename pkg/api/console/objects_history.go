package console

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

const (
	historyPage = 20          // events that a page of the history has
	publication = time.Minute // how long after a change its event is expected, unless the log can't be read
)

// historyList is a page of the history of an object.
type historyList struct {
	Store  StoreInfo
	UUID   string
	Name   string // "" for none
	Groups []historyGroup
	Older  string // the URL of older events; "" for none
	Exists bool   // the object
	Late   string // the URL of this page while the log may lack the latest change; "" otherwise

	Problem string // why the log can't be read
}

// historyEvent is an event in the history of an object.
type historyEvent struct {
	LogEvent
	What    string
	Actor   person
	Changes []change
	Record  string // of a file
	Omitted bool   // the event lacks a part of the change
	Version string // the URL of the page that restores the object as it was then; "" for none
}

// objectHistory shows the newest events of an object, of a deleted one too, or those before a sequence of the log.
func (v *objectsView) objectHistory(r *request) error {
	info, st, err := v.store(r)
	if err != nil {
		return err
	}
	uuid, err := r.UUID()
	if err != nil {
		return err
	}
	if v.history == nil {
		return notFound("this process does not read the log of events")
	}
	ctx, err := r.Call()
	if err != nil {
		return err
	}
	before, _ := strconv.ParseUint(r.Query("before"), 10, 64)
	asking, cancel := r.busContext()
	defer cancel()
	events, err := v.history(asking, info.Name, uuid, before, historyPage+1)
	l := historyList{Store: info, UUID: uuid}
	if l.Problem, err = r.withoutBus(err); err != nil {
		return err
	}
	state, deleted, err := st.Deleted(ctx, uuid)
	if err != nil {
		return err
	}
	l.Exists = !deleted && state.Revision > 0
	if before == 0 && isLate(state.Revision, events) {
		l.Late = pathOf("objects", info.Name, "object", uuid, "history")
	}
	var shown []historyEvent
	for i, e := range events[:min(len(events), historyPage)] {
		var older []byte
		if i+1 < len(events) {
			older = events[i+1].Object
		}
		one := v.historyEvent(st, e, older)
		if current := before == 0 && i == 0 && l.Late == ""; !current && l.Exists && !info.Fixed && isVersion(e) {
			one.Version = pathOf("objects", info.Name, "object", uuid, "history", strconv.FormatUint(e.Sequence, 10))
		}
		shown = append(shown, one)
	}
	if err := r.nameActors(ctx, shown); err != nil {
		return err
	}
	l.Groups = grouped(shown)
	if len(events) > historyPage {
		l.Older = pathOf("objects", info.Name, "object", uuid, "history") + "?before=" +
			strconv.FormatUint(events[historyPage-1].Sequence, 10)
	}
	if r.Partial() {
		return r.Fragment("objects_history", "events", l)
	}
	current := []*named{new(v.names.of(info.Name, uuid))}
	v.names.fill(ctx, current)
	l.Name = cmp.Or(current[0].Name, nameAt(st, info, events))
	return r.Page("objects_history", "History of "+cmp.Or(l.Name, uuid), l)
}

// isLate reports whether the event of an object's revision is expected. Marks of belfry are revisions without events.
func isLate(revision uint64, events []LogEvent) bool {
	return time.Since(time.UnixMicro(int64(revision))).Abs() < publication && //nolint:gosec // a time
		!slices.ContainsFunc(events, func(e LogEvent) bool { return e.Revision >= revision })
}

// nameAt returns the name of an object in the newest of its events that has one.
func nameAt(st *store.Store, info StoreInfo, events []LogEvent) string {
	for _, e := range events {
		if name := nameOf(info, st.Rules().Visible(e.Object)); name != "" {
			return name
		}
	}
	return ""
}

// person is a user who did something.
type person struct {
	UUID    string // "" for nobody
	Name    string // by the title of the user store; "" without one
	Address string // of a login; "" for a user without one, or who no longer exists
	URL     string // of the user's page; "" without an address
}

// nameActors looks up the address of each actor of the events once, and what the title of the user store calls them.
func (r *request) nameActors(ctx context.Context, events []historyEvent) error {
	if users := r.console.names.users(); users != "" {
		actors := make([]named, len(events))
		for i, e := range events {
			actors[i] = r.console.names.of(users, e.Actor.UUID)
		}
		r.console.names.fill(ctx, pointers(actors))
		for i := range events {
			events[i].Actor.Name = actors[i].Name
		}
	}
	addresses := map[string]string{}
	for i := range events {
		p := &events[i].Actor
		if !object.ValidUUID(p.UUID) {
			continue // nobody, or whom a program on the bus has named
		}
		address, known := addresses[p.UUID]
		if !known {
			var err error
			if address, err = r.console.service.Users.Address(ctx, p.UUID); err != nil {
				return err
			}
			addresses[p.UUID] = address
		}
		if p.Address = address; address != "" {
			p.URL = pathOf("users", p.UUID)
		}
	}
	return nil
}

// historyEvent returns an event as the history shows it, without the fields that never leave the server. older is the
// object after the previous event, nil if that is not known.
func (v *objectsView) historyEvent(st *store.Store, e LogEvent, older []byte) historyEvent {
	h := historyEvent{LogEvent: e, What: string(e.Event)}
	if e.Actor != nil {
		h.Actor.UUID = *e.Actor
	}
	switch e.Event {
	case event.StoreSaved, event.Register:
		h.Changes = diff("", visibleText(st, e.Object))
		h.Omitted = e.ObjectOmitted
	case event.StoreUpdated:
		// Previous has no entry for a field that was absent, so only the previous event shows that the field is new.
		after, known := visible(st, e.Object), visible(st, older)
		before, shown := object.Object{}, object.Object{}
		for name, value := range e.Previous {
			if !st.Rules().Hidden(name) {
				before[name] = value
			}
		}
		for name, value := range after {
			_, changed := before[name]
			if _, there := known[name]; changed || known != nil && !there {
				shown[name] = value
			}
		}
		delete(before, "updated") // every write sets it
		delete(shown, "updated")
		h.Changes = diff(fieldLines(before), fieldLines(shown))
		h.Omitted = e.ObjectOmitted || e.PreviousOmitted
	case event.StoreDeleted:
		h.Changes = diff(visibleText(st, e.Object), "")
		h.Omitted = e.ObjectOmitted
	case event.BinaryUploaded, event.BinaryDeleted:
		if !st.Rules().Hidden(e.Property) {
			h.Record = indent(e.Record)
		}
	}
	return h
}

// fieldLines returns the fields of an object, indented, without the braces around them.
func fieldLines(o object.Object) string {
	if len(o) == 0 {
		return ""
	}
	text := indent(o.Encode())
	lines := strings.Split(text, "\n")
	if len(lines) < 3 {
		return text // too large to be indented
	}
	return strings.Join(lines[1:len(lines)-1], "\n")
}

// visible returns an object of an event without the fields that never leave the server.
func visible(st *store.Store, body []byte) object.Object {
	if len(body) == 0 {
		return nil
	}
	o, err := object.Decode(st.Rules().Visible(body))
	if err != nil {
		return nil
	}
	return o
}

func visibleText(st *store.Store, body []byte) string {
	o := visible(st, body)
	if o == nil {
		return ""
	}
	return fieldLines(o)
}
