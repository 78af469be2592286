package console

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"belfry/pkg/httpkit"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Bounds of the names of a page. Objects beyond them are shown by their uuids.
const (
	maxNamed      = 100                   // objects that are read for their names
	maxNamedBytes = 8 << 20               // of the objects of a store that are read, as they are stored
	nameTime      = 75 * time.Millisecond // how long a page waits for all of them
	maxObjectName = 80                    // characters
)

// named is an object as pages show it: by its name, where it has one, beside its uuid.
type named struct {
	Store, UUID string
	Name        string // "": the object has no name, does not exist, or was not read
	Linked      bool   // the console shows the store
}

// showsObjects is data of a page that shows objects: their names are read before the page is rendered.
type showsObjects interface {
	// objects returns the objects of the page. Those that have a name already are not read.
	objects() []*named
}

// namer finds the names of objects.
type namer struct {
	set    *store.Set
	stores map[string]StoreInfo // those that the console shows
}

func newNamer(o *Objects) *namer {
	n := &namer{stores: map[string]StoreInfo{}}
	if o != nil {
		n.set = o.Set
		for _, info := range o.Stores {
			n.stores[info.Name] = info
		}
	}
	return n
}

// of returns an object of which a page knows no more than the uuid.
func (n *namer) of(name, uuid string) named {
	_, linked := n.stores[name]
	return named{Store: name, UUID: uuid, Linked: linked}
}

// all is of for several objects of a store.
func (n *namer) all(name string, uuids []string) []named {
	all := make([]named, len(uuids))
	for i, uuid := range uuids {
		all[i] = n.of(name, uuid)
	}
	return all
}

// users returns the user store if its title is configured; "" if users are called by their addresses.
func (n *namer) users() string {
	for name, info := range n.stores {
		if info.Users && !info.ByAddress {
			return name
		}
	}
	return ""
}

// titles returns the fields that can name objects of stores, for a script.
func (n *namer) titles(stores []string) string {
	fields := map[string][]string{}
	for _, name := range stores {
		if all := n.stores[name].texts(); len(all) > 0 {
			fields[name] = all
		}
	}
	text, _ := json.Marshal(fields) // strings
	return string(text)
}

// pointers returns where objects are.
func pointers(objects []named) []*named {
	all := make([]*named, len(objects))
	for i := range objects {
		all[i] = &objects[i]
	}
	return all
}

// fill reads the names of objects with the rights of the caller, those of all stores at once. Without the names that it
// can't read in time, or that are too many, a page still has the uuids.
func (n *namer) fill(ctx context.Context, all []*named) {
	wanted, left := map[string][]string{}, maxNamed
	known := map[[2]string]string{}
	for _, o := range all {
		key := [2]string{o.Store, o.UUID}
		if _, has := known[key]; has || o.Name != "" || left == 0 || !n.names(o.Store) || !object.ValidUUID(o.UUID) {
			continue
		}
		known[key] = ""
		wanted[o.Store], left = append(wanted[o.Store], o.UUID), left-1
	}
	if len(wanted) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, nameTime)
	defer cancel()
	var mu sync.Mutex
	var reads sync.WaitGroup
	for name, uuids := range wanted {
		reads.Go(func() {
			// An error leaves uuids.
			found, _ := store.GetMany(ctx, n.set.Store(name), uuids, n.stores[name].projection(), maxNamedBytes)
			mu.Lock()
			defer mu.Unlock()
			for uuid, body := range found {
				known[[2]string{name, uuid}] = nameOf(n.stores[name], body)
			}
		})
	}
	reads.Wait()
	for _, o := range all {
		o.Name = cmp.Or(o.Name, known[[2]string{o.Store, o.UUID}])
	}
}

// names reports whether objects of a store can have names.
func (n *namer) names(name string) bool {
	info, shown := n.stores[name]
	return shown && len(info.nameFields()) > 0
}

// named returns an object that has been read, with its name.
func (n *namer) named(name string, o store.Stored) named {
	one := n.of(name, o.UUID)
	if one.Linked {
		one.Name = nameOf(n.stores[name], n.set.Store(name).Rules().Visible(o.Body))
	}
	return one
}

// userNames are the fields of users that name them where the configuration says nothing.
var userNames = []string{"name", "login", "email"}

// idents is the array of a user's logins.
const idents = "idents"

// nameFields returns the fields that can name an object of the store.
func (info StoreInfo) nameFields() []string {
	if info.ByAddress {
		return append(info.texts(), idents)
	}
	return info.texts()
}

// texts returns the fields whose first text names an object, if no address does.
func (info StoreInfo) texts() []string {
	if info.ByAddress {
		return slices.Concat(info.Title, userNames)
	}
	return slices.Clone(info.Title)
}

// projection keeps the fields that name an object.
func (info StoreInfo) projection() *store.Projection {
	p, err := store.ParseProjection(strings.Join(info.nameFields(), ","))
	if err != nil {
		return nil // more than a projection can keep: the whole object
	}
	return p
}

// nameOf returns the name of an object: its first field of the title that is a text. For users it is an address by
// default. "": it has no such text.
func nameOf(info StoreInfo, body []byte) string {
	if info.ByAddress {
		for _, login := range loginsIn(object.Field(body, idents)) {
			if name := nameFrom(strings.TrimSuffix(login, "_email")); name != "" {
				return name
			}
		}
	}
	for _, field := range info.texts() {
		if text, ok := object.Text(object.Field(body, field)); ok {
			if name := nameFrom(text); name != "" {
				return name
			}
		}
	}
	return ""
}

// nameFrom returns a text of others as a name: one line of some characters, legible; "" for one in which nothing can be
// seen.
func nameFrom(text string) string {
	start := httpkit.Truncate(strings.TrimSpace(text), 8*maxObjectName) // of any text, without reading all of it
	line := strings.Join(strings.Fields(start), " ")
	if !strings.ContainsFunc(line, func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }) {
		return ""
	}
	if characters := []rune(line); len(characters) > maxObjectName {
		return legible(string(characters[:maxObjectName])) + "…"
	}
	if len(start) < len(strings.TrimSpace(text)) {
		return legible(line) + "…"
	}
	return legible(line)
}
