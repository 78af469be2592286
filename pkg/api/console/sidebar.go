package console

import (
	"slices"
	"strconv"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
)

// group is the part of the sidebar that has the link to a view.
type group int

// Groups of views. A view that names none is one of operations.
const (
	operationsGroup group = iota
	storesGroup           // what is about stores
	dataGroup             // what is about users, events and requests
)

// link is an entry of the sidebar.
type link struct {
	URL, Title, view string
	group            group
	Current          bool
	Pinned           bool // of a store
}

// sidebar is the data of the sidebar: each view, and each store that the view Objects shows.
type sidebar struct {
	About, Data, Operations []link // views

	Stores   []link // the pinned ones first
	Filter   bool   // there are so many stores that a field filters them
	NewStore string // path of the form for another store; "" if it does not exist
	Theme    string // see page
	Help     string // path of the page of the documentation about this one
}

// longList is the number of stores from which on a field filters them.
const longList = 8

// storeLinks returns the links to the stores that the view Objects shows.
func storeLinks(o *Objects) (all []link) {
	if o == nil {
		return nil
	}
	for _, s := range o.Stores {
		all = append(all, link{URL: pathOf("objects", s.Name), Title: s.Name, view: "objects"})
	}
	return all
}

// sidebar returns the sidebar of a page.
func (r *request) sidebar(help, theme string) *sidebar {
	c := r.console
	s := &sidebar{NewStore: c.newStore, Filter: len(c.stores) >= longList, Help: help, Theme: theme}
	at := r.storeOfPath()
	for _, l := range c.nav {
		if l.view == stepsName && r.settledSteps().all() {
			continue
		}
		l.Current = l.view == r.view && (l.view != "objects" || at == "")
		switch l.group {
		case storesGroup:
			s.About = append(s.About, l)
		case dataGroup:
			s.Data = append(s.Data, l)
		default:
			s.Operations = append(s.Operations, l)
		}
	}
	pins := r.pins()
	for _, pinned := range []bool{true, false} {
		for _, l := range c.stores {
			if slices.Contains(pins, l.Title) != pinned {
				continue
			}
			l.Pinned, l.Current = pinned, l.Title == at && r.view == l.view
			s.Stores = append(s.Stores, l)
		}
	}
	return s
}

// storeOfPath returns the store that the path of a page names; "" if it names none that the console shows.
func (r *request) storeOfPath() string {
	name, err := r.PathParam("store")
	if err != nil || !r.console.hasStore(name) {
		return "" // the page is about nothing, or is an error's
	}
	return name
}

func (c *Console) hasStore(name string) bool {
	return slices.ContainsFunc(c.stores, func(l link) bool { return l.Title == name })
}

const (
	pinsCookie = "belfry-console-pins"
	maxPins    = 12
)

// pins returns the stores that this browser shows first.
func (r *request) pins() []string {
	for _, names := range cookieValues[[]string](r, pinsCookie, maxValue) {
		return names[:min(len(names), maxPins)]
	}
	return nil
}

// pin pins a store in the sidebar of this browser, or ends that.
func (c *Console) pin(r *request) error {
	form, err := r.Form()
	if err != nil {
		return err
	}
	name, add := form.Get("store"), form.Get("pin") == "true"
	if !c.hasStore(name) {
		return notFound("there is no store %s", httpkit.Truncate(strings.ToValidUTF8(name, ""), 100))
	}
	names := slices.DeleteFunc(r.pins(), func(n string) bool { return n == name || !c.hasStore(n) })
	done := name + " is no longer pinned."
	if add {
		if len(names) == maxPins {
			return errs.New(errs.Conflict, "%d stores are pinned, which is the most: unpin one first", maxPins)
		}
		names, done = append(names, name), name+" is pinned."
	}
	if err := r.setCookie(pinsCookie, names, keptAge); err != nil {
		return err
	}
	back := &undo{Path: Path + "/pins", Fields: map[string]string{"store": name, "pin": strconv.FormatBool(!add)}}
	return r.RedirectUndo(r.sender(), done, back)
}

// sender returns the page of the console that has sent a form.
func (r *request) sender() string {
	if at := r.shownPage(); inConsole(at) {
		return at
	}
	return Path
}
