package sse

import (
	"context"
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/access"
	"belfry/pkg/store/query"
)

// Subscription selects the events of a stream.
type Subscription struct {
	Stores []string // empty: all
	Events []string // empty: all of EventNames
	UUIDs  []string // of objects; empty: all
	Filter string   // of the objects of one store, as of a list; "": all
	Fields string   // of objects, as of a list; "": all

	// After is the id of the last event that the client has received; "" begins with
	// the next event, "0" with the oldest one in the log.
	After string
}

// filter is a validated Subscription.
type filter struct {
	stores   map[*source]bool // nil: all
	events   map[event.Name]bool
	uuids    map[string]bool   // nil: all
	parsed   *query.Filter     // of the objects; nil: all
	objects  *objectFilter     // parsed, while a stream uses it
	fields   *store.Projection // nil: all
	selects  bool              // some objects: those that leave are sent
	accounts bool              // some of them are about the security of accounts
	after    *place            // nil: the end of the log
	unknown  bool              // the client has an id that can't be opened
}

// filter validates a Subscription.
func (h *Hub) filter(w Subscription) (filter, error) {
	s := filter{events: map[event.Name]bool{}}
	if err := h.parseID(w.After, &s); err != nil {
		return s, err
	}
	for _, name := range w.Stores {
		from := h.sources[name]
		if from == nil {
			return s, errs.New(errs.Invalid,
				"store %q has no event stream; %s: expose.events or expose.list gives a store one", cut(name),
				known(h.names))
		}
		if s.stores == nil {
			s.stores = map[*source]bool{}
		}
		s.stores[from] = true
	}
	for _, name := range w.Events {
		if accounts := accountEvents(event.Name(name)); accounts != nil && h.opts.Accounts != "" {
			s.accounts = true
			for _, n := range accounts {
				s.events[n] = true
			}
			continue
		}
		if !slices.Contains(EventNames(), event.Name(name)) {
			return s, errs.New(errs.Invalid, "event %q is not streamed; %s", cut(name), known(EventNames()))
		}
		s.events[event.Name(name)] = true
	}
	return s, s.selectObjects(w)
}

// selectObjects validates which objects are selected, and which of their fields.
func (s *filter) selectObjects(w Subscription) (err error) {
	for _, uuid := range w.UUIDs {
		if err := object.CheckUUID(uuid); err != nil {
			return errs.Wrap(err, errs.Invalid, "uuid: %q is %v", cut(uuid), err)
		}
		if s.uuids == nil {
			s.uuids = map[string]bool{}
		}
		s.uuids[uuid] = true
	}
	if len(s.uuids) > MaxUUIDs {
		return errs.New(errs.Invalid, "uuid: more than %d are named; select many objects by a filter", MaxUUIDs)
	}
	if s.parsed, err = query.ParseFilter(w.Filter); err != nil {
		return err
	}
	switch {
	case s.parsed == nil:
	case len(s.stores) != 1:
		return errOneStore
	case s.accounts:
		return errs.New(errs.Invalid, "filter: events Auth.* have no object that it could be about")
	}
	s.selects = s.uuids != nil || s.parsed != nil
	s.fields, err = store.ParseProjection(w.Fields)
	return err
}

// MaxUUIDs is how many objects a subscription names at most.
const MaxUUIDs = 100

// accountEvents returns the events about the security of accounts that a name selects; nil for none.
func accountEvents(name event.Name) []event.Name {
	switch {
	case name == event.AuthPattern:
		return event.Auth()
	case slices.Contains(event.Auth(), name):
		return []event.Name{name}
	}
	return nil
}

// Authorize reports Unauthenticated or Denied for a subscription that names events about the security of accounts and a
// client that may not receive them, and the errors of a filter by fields that the client may not read.
func (h *Hub) Authorize(ctx context.Context, w Subscription, v *Viewer) error {
	s, err := h.filter(w)
	switch {
	case err != nil:
		return err
	case s.parsed != nil:
		return s.allowFilter(ctx, v)
	case !s.accounts || v.Audit:
		return nil
	case v.User == nil:
		return errs.New(errs.Unauthenticated,
			"events about the security of accounts are for the users of authentication.audit: log in as one of them")
	default:
		return errs.New(errs.Denied,
			"events about the security of accounts are for the users of authentication.audit, with a login")
	}
}

// allowFilter refuses a filter by fields that a client may not read.
func (s *filter) allowFilter(ctx context.Context, v *Viewer) error {
	for from := range s.stores {
		c := access.Caller{Client: true, User: v.User, Session: v.Rules}
		if err := from.store.Rules().AllowFilter(ctx, c, s.parsed.Fields()); err != nil {
			return err
		}
	}
	return nil
}

// match reports whether an event is selected, as far as its object does not decide.
func (s *filter) match(e *entry) bool {
	if e.frame == nil || s.stores != nil && !s.stores[e.source] || s.uuids != nil && !s.uuids[e.uuid] {
		return false
	}
	return s.events[e.name] || len(s.events) == 0 && !e.name.IsAuth()
}

func known[S ~string](names []S) string {
	if len(names) == 0 {
		return "there are none"
	}
	var all []string
	for _, name := range names {
		all = append(all, string(name))
	}
	return "there are " + strings.Join(all, ", ")
}

// cut bounds a part of a request in a message.
func cut(text string) string {
	const most = 64
	if len(text) > most {
		text = text[:most]
	}
	return strings.ToValidUTF8(text, "")
}
