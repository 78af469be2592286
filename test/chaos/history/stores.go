package history

import (
	"fmt"
	"slices"
	"strings"

	"belfry/test/chaos/world"
)

// MetricsToken is the token for the metrics, which say when nothing is pending.
const MetricsToken = "the-metrics-of-chaos"

// Stores is the part of a configuration that clients and checks need: metrics, every store, the registration of
// users and files. world.Storage stands for the storage of files. Their grace is longer than a run: an upload
// that is killed leaves a content without a record, which belfry finds every six hours and which belfry verify
// reports once the grace is over.
//
// Properties are derived in both directions: the title of a parent is copied into its children, from there into their
// toys, and from there into arrays of the children; ratings are counted in their parent, and the count is copied into
// the children.
//
// A shelf can't be deleted while a box or a lid names it. A box has to name one that exists.
const Stores = `
metrics: {token: ` + MetricsToken + `}
fillRate: 20000
stores:
  Registers:
    expose: {list: true}
  Parents:
    expose: {list: true}
  Children:
    expose: {list: true}
    references: {parent: {store: Parents, onDelete: cascade}}
    copies: {parentTitle: parent.title, parentRatings: parent.ratings}
    map: {Parents: {key: parent, target: children, fields: "title, value, parentTitle", cascade: true}}
  Toys:
    expose: {list: true}
    references: {child: {store: Children, onDelete: cascade}, register: {store: Registers, onDelete: clear}}
    copies: {grandTitle: child.parentTitle, registerTitle: register.title}
    map: {Children: {key: child, target: toys, fields: "title, grandTitle, registerTitle", cascade: true}}
  Smalls:
    expose: {list: true}
    map: {Parents: {key: parent, ` + smallAggregates + `target: smalls, fields: "title, value", limit: 3}}
  Tags:
    expose: {list: true}
    map: {Parents: {key: parents, target: tags, fields: "title, parents", limit: 3}}
` + ratings + shelves + `  Users:
    expose: {list: true}
    policy: {create: "false", get: "true", update: "true", delete: "true", list: "true"}
    fields: {idents: {read: "true"}}
authentication:
  limits: {address: 0, account: 0}
  providers:
    email: {postValidation: true, skipEmailValidation: true}
binaries:
  binary: {` + world.Storage + `, map: {Children: [picture]}, grace: 24h}
`

// What the last release does not have; Released is without it. The other lines begin with references or copies.
const (
	smallAggregates = "aggregates: {smallCount: count(), smallSum: sum(value)}, "
	ratings         = `  Ratings:
    expose: {list: true}
    references: {parent: {store: Parents, required: true, onDelete: cascade}}
    copies: {parentTitle: parent.title}
    map:
      Parents:
        key: parent
        aggregates: {ratings: count(), total: sum(value), best: max(value), worst: min(value), last: max(title)}
`
	shelves = `  Shelves:
    expose: {list: true}
  Boxes:
    expose: {list: true}
    references: {shelf: {store: Shelves, required: true, onDelete: restrict}}
    copies: {shelfTitle: shelf.title}
  Lids:
    expose: {list: true}
    references: {shelf: {store: Shelves, onDelete: restrict}}
`
)

// The stores of the configuration.
const (
	Registers = "Registers"
	Parents   = "Parents"
	Children  = "Children"
	Toys      = "Toys"
	Smalls    = "Smalls"
	Tags      = "Tags"
	Ratings   = "Ratings"
	Shelves   = "Shelves"
	Boxes     = "Boxes"
	Lids      = "Lids"
	Users     = "Users"
)

// Picture is the property of Children that holds files.
const Picture = "picture"

// Store is what clients and checks know of one store.
type Store struct {
	Name, Path string

	Key    string // the field that names targets; "" for none
	Target string // the store that it names
	Array  string // the array of the target that holds copies
	Fields []string
	Limit  int // of the array; 0: none is reached

	Cascade  bool // objects are deleted with their target
	Required bool // objects name a target that exists when they are created
	Restrict bool // a target is not deleted while objects name it

	Cleared    string // the field of a reference that is cleared when its object is deleted; "" for none
	Clears     string // the store of that object
	Copies     []Copy
	Aggregates []Aggregate // in the target

	// Shared says that belfry's workers and uploads write the objects too, so that a
	// client doesn't know each of their revisions.
	Shared bool

	Objects int // how many the clients write
}

// Copy is a property with the value that another has in the object that a reference names.
type Copy struct {
	Field     string
	Reference string // the field that names the object
	Source    string // the store of that object
	From      string // its property
}

// The functions of aggregates.
const (
	Count = "count"
	Sum   = "sum"
	Min   = "min"
	Max   = "max"
)

// Aggregate is a property of a target that belfry computes of all objects that name it.
type Aggregate struct{ Property, Function, Field string }

// All returns the stores that clients write, targets before their sources.
func All() []Store {
	if released {
		return releasedStores()
	}
	return stores()
}

func stores() []Store {
	return []Store{
		{Name: Registers, Path: "/registers", Objects: 3},
		{Name: Parents, Path: "/parents", Objects: 5, Shared: true},
		{
			Name: Children, Path: "/children", Key: "parent", Target: Parents, Array: "children",
			Fields: []string{"title", "value", "parentTitle"}, Cascade: true, Shared: true, Objects: 10,
			Copies: []Copy{{"parentTitle", "parent", Parents, "title"}, {"parentRatings", "parent", Parents, "ratings"}},
		},
		{
			Name: Toys, Path: "/toys", Key: "child", Target: Children, Array: "toys",
			Fields: []string{"title", "grandTitle", "registerTitle"}, Cascade: true, Shared: true, Objects: 10,
			Cleared: "register", Clears: Registers,
			Copies: []Copy{{"grandTitle", "child", Children, "parentTitle"},
				{"registerTitle", "register", Registers, "title"}},
		},
		{
			Name: Smalls, Path: "/smalls", Key: "parent", Target: Parents, Array: "smalls",
			Fields: []string{"title", "value"}, Limit: 3, Objects: 24,
			Aggregates: []Aggregate{{"smallCount", Count, ""}, {"smallSum", Sum, "value"}},
		},
		{Name: Tags, Path: "/tags", Key: "parents", Target: Parents, Array: "tags",
			Fields: []string{"title", "parents"}, Limit: 3, Objects: 8},
		{
			Name: Ratings, Path: "/ratings", Key: "parent", Target: Parents, Cascade: true, Required: true,
			Shared: true, Objects: 12, Copies: []Copy{{"parentTitle", "parent", Parents, "title"}},
			Aggregates: []Aggregate{{"ratings", Count, ""}, {"total", Sum, "value"}, {"best", Max, "value"},
				{"worst", Min, "value"}, {"last", Max, "title"}},
		},
		// A deletion that is refused, or that a crash ends, changes the revision of a shelf without an event.
		{Name: Shelves, Path: "/shelves", Objects: 6, Shared: true},
		{Name: Boxes, Path: "/boxes", Key: "shelf", Target: Shelves, Required: true, Restrict: true, Shared: true,
			Objects: 4, Copies: []Copy{{"shelfTitle", "shelf", Shelves, "title"}}},
		{Name: Lids, Path: "/lids", Key: "shelf", Target: Shelves, Restrict: true, Objects: 3, Shared: true},
	}
}

// Restricted reports whether objects of other stores prevent that those of a store are deleted.
func Restricted(name string) bool {
	return slices.ContainsFunc(All(), func(s Store) bool { return s.Restrict && s.Target == name })
}

// StoreOf returns the store of a name; the zero Store if clients do not write it.
func StoreOf(name string) Store {
	for _, s := range All() {
		if s.Name == name {
			return s
		}
	}
	return Store{}
}

// Copied reports whether other objects have copies of the titles of a store's objects.
func Copied(name string) bool {
	return slices.ContainsFunc(All(), func(s Store) bool {
		return slices.ContainsFunc(s.Copies, func(c Copy) bool { return c.Source == name })
	})
}

// Named returns the object of a number in a store. tag is the same for all objects of a run.
func Named(tag, store string, number int) Object {
	return Object{store, fmt.Sprintf("%s.%s-%d", tag, strings.ToLower(store), number)}
}

// Universe returns all objects that the clients of a run may write.
func Universe(tag string) []Object {
	var all []Object
	for _, s := range All() {
		for n := range s.Objects {
			all = append(all, Named(tag, s.Name, n))
		}
	}
	return all
}
