package eventlog

import (
	"slices"
	"strconv"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// Select selects events; an empty list selects all, but for those that are selected only by name: those of event.Auth,
// each or all by event.AuthPattern, and event.ConfigChanged.
type Select struct {
	Events []string
	Stores []string
	UUIDs  []string
}

// Subjects returns the subjects of the selected events in the log.
func (s Select) Subjects() ([]string, error) {
	events, stores, uuids := s.Events, s.Stores, s.UUIDs
	if len(events) == 0 && len(stores) == 0 && len(uuids) == 0 {
		return event.Narrow(event.LogPrefix + ">"), nil
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	if len(events) == 0 {
		events = []string{"*.*", string(event.Register)} // all names but Register have two tokens
	}
	if len(stores) == 0 {
		stores = []string{"*"}
	}
	if len(uuids) == 0 {
		uuids = []string{"*"}
	}
	var all []string
	for _, name := range events {
		for _, st := range stores {
			for _, uuid := range uuids {
				all = append(all, event.Narrow(subject(name, st, uuid))...)
			}
		}
	}
	return all, nil
}

func subject(name, store, uuid string) string {
	partition := "*"
	if uuid != "*" {
		partition = strconv.Itoa(event.Partition(uuid))
	}
	return event.LogPrefix + partition + "." + name + "." + store + "." + event.Token(uuid)
}

// check rejects values that would work as a wildcard or select nothing.
func (s Select) check() error {
	for _, name := range s.Events {
		if event.Name(name) != event.AuthPattern && !slices.Contains(event.Durable(), event.Name(name)) {
			return errs.New(errs.Invalid, "%q is not a durable event; the durable events are %s", name, durable())
		}
	}
	for what, list := range map[string][]string{"event": s.Events, "store": s.Stores, "uuid": s.UUIDs} {
		for i, text := range list {
			if what == "event" && event.Name(text) == event.AuthPattern {
				if len(slices.DeleteFunc(slices.Clone(list),
					func(name string) bool { return !event.Name(name).IsAuth() })) > 1 {
					return errs.New(errs.Invalid, "%s selects the other events Auth.* already", text)
				}
				continue
			}
			if text == "" || strings.ContainsAny(text, "*> \t\r\n") || what == "store" && strings.Contains(text, ".") {
				return errs.New(errs.Invalid, "%q is not a valid %s", text, what)
			}
			if slices.Contains(list[:i], text) {
				return errs.New(errs.Invalid, "%s %q is given twice", what, text)
			}
		}
	}
	return nil
}

// durable lists the names of the durable events.
func durable() string {
	var names []string
	for _, name := range event.Durable() {
		names = append(names, string(name))
	}
	return strings.Join(append(names, "and "+string(event.AuthPattern)+" for all of these"), ", ")
}

// ParseSubject returns the event and the object of a subject of the log.
func ParseSubject(subject string) (name event.Name, store, uuid string, ok bool) {
	tokens := strings.Split(subject, ".")
	n := len(tokens)
	if n < 5 || n > 6 || tokens[0]+"." != event.LogPrefix {
		return "", "", "", false
	}
	return event.Name(strings.Join(tokens[2:n-2], ".")), tokens[n-2], event.FromToken(tokens[n-1]), true
}
