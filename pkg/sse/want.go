package sse

import (
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// Want is what a client asks for.
type Want struct {
	Stores []string // none: all that can be heard
	Events []string // none: all that can be heard

	// After is the id of the last event that the client has seen; nil begins
	// with what comes. 0 begins with the oldest event that is kept.
	After *uint64
}

// selection is a Want that was checked.
type selection struct {
	stores map[*source]bool // nil: all
	events map[event.Name]bool
	after  *uint64
}

// check reports errs.Invalid for what can't be heard.
func (h *Hub) check(w Want) (selection, error) {
	s := selection{events: map[event.Name]bool{}, after: w.After}
	for _, name := range w.Stores {
		from := h.sources[name]
		if from == nil {
			return s, errs.New(errs.Invalid, "store %q is none whose events can be heard; %s", cut(name), known(h.names))
		}
		if s.stores == nil {
			s.stores = map[*source]bool{}
		}
		s.stores[from] = true
	}
	for _, name := range w.Events {
		if !slices.Contains(Heard(), event.Name(name)) {
			return s, errs.New(errs.Invalid, "event %q is none that can be heard; %s", cut(name), known(Heard()))
		}
		s.events[event.Name(name)] = true
	}
	return s, nil
}

// takes reports whether an event is selected.
func (s *selection) takes(e *entry) bool {
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

// cut bounds what is repeated of a request.
func cut(text string) string {
	const most = 64
	if len(text) > most {
		text = text[:most]
	}
	return strings.ToValidUTF8(text, "")
}
