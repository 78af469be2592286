package sse

import (
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// Subscription selects the events of a stream.
type Subscription struct {
	Stores []string // empty: all
	Events []string // empty: all of EventNames

	// After is the id of the last event that the client has received; "" begins with
	// the next event, "0" with the oldest one in the log.
	After string
}

// filter is a validated Subscription.
type filter struct {
	stores   map[*source]bool // nil: all
	events   map[event.Name]bool
	accounts bool   // some of them are about the security of accounts
	after    *place // nil: the end of the log
	unknown  bool   // the client has an id that can't be opened
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
	return s, nil
}

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

// RequireAudit reports Unauthenticated or Denied for a subscription that names events about the security of accounts
// and a client that may not receive them.
func (h *Hub) RequireAudit(w Subscription, v *Viewer) error {
	s, err := h.filter(w)
	switch {
	case err != nil || !s.accounts || v.Audit:
		return err
	case v.User == nil:
		return errs.New(errs.Unauthenticated,
			"events about the security of accounts are for the users of authentication.audit: log in as one of them")
	default:
		return errs.New(errs.Denied,
			"events about the security of accounts are for the users of authentication.audit, with a login")
	}
}

// match reports whether an event is selected.
func (s *filter) match(e *entry) bool {
	if e.name.IsAuth() {
		return e.frame != nil && s.events[e.name] && (s.stores == nil || s.stores[e.source])
	}
	return e.frame != nil && (s.stores == nil || s.stores[e.source]) && (len(s.events) == 0 || s.events[e.name])
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
