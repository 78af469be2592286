package history

import (
	"fmt"
	"strings"

	"belfry/test/chaos/world"
)

// MetricsToken is the token for the metrics, which say when nothing is pending.
const MetricsToken = "the-metrics-of-chaos"

// Stores is the part of a configuration that clients and checks need: metrics, every store, the registration of
// users and files. world.Storage stands for the storage of files. Their grace is longer than a run: an upload
// that is killed leaves a content without a record, which belfry finds every six hours and which belfry verify
// reports once the grace is over.
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
    map: {Parents: {key: parent, target: children, fields: "title, value", cascade: true}}
  Toys:
    expose: {list: true}
    map: {Children: {key: child, target: toys, fields: title, cascade: true}}
  Smalls:
    expose: {list: true}
    map: {Parents: {key: parent, target: smalls, fields: "title, value", limit: 3}}
  Tags:
    expose: {list: true}
    map: {Parents: {key: parents, target: tags, fields: "title, parents", limit: 3}}
  Users:
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

// The stores of the configuration.
const (
	Registers = "Registers"
	Parents   = "Parents"
	Children  = "Children"
	Toys      = "Toys"
	Smalls    = "Smalls"
	Tags      = "Tags"
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

	Cascade bool // objects are deleted with their target

	// Shared says that belfry's workers and uploads write the objects too, so that a
	// client doesn't know each of their revisions.
	Shared bool

	Objects int // how many the clients write
}

// All returns the stores that clients write, targets before their sources.
func All() []Store {
	return []Store{
		{Name: Registers, Path: "/registers", Objects: 3},
		{Name: Parents, Path: "/parents", Objects: 5, Shared: true},
		{
			Name: Children, Path: "/children", Key: "parent", Target: Parents, Array: "children",
			Fields: []string{"title", "value"}, Cascade: true, Shared: true, Objects: 10,
		},
		{Name: Toys, Path: "/toys", Key: "child", Target: Children, Array: "toys", Fields: []string{"title"},
			Cascade: true, Objects: 10},
		{Name: Smalls, Path: "/smalls", Key: "parent", Target: Parents, Array: "smalls",
			Fields: []string{"title", "value"}, Limit: 3, Objects: 24},
		{Name: Tags, Path: "/tags", Key: "parents", Target: Parents, Array: "tags",
			Fields: []string{"title", "parents"}, Limit: 3, Objects: 8},
	}
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
