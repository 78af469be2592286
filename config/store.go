package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"belfry/config/decode"
)

// Store is a store of objects.
type Store struct {
	Name string
	// a key of Config.Backends
	Backend string `key:"backend" is:"name" default:"default" reload:"refused=data"`
	// nil when the store has no HTTP routes
	Expose *Expose `key:"expose"`
	// path of a JSON Schema; "" for none
	Schema string `key:"schema" is:"file"`
	// new objects get the values of default in the schema
	Defaults bool `key:"defaults"`
	// the schema's format is asserted
	Formats bool   `key:"formats"`
	Policy  Policy `key:"policy"`
	// the property with the uuid of the user to whom an object belongs; "" for none
	Owner string `key:"owner" is:"ownProperty"`
	// clients may choose the uuids of new objects although there is a policy or an owner
	ClientUUIDs bool `key:"uuid" is:"either server client"`
	// by property: what it names
	References map[string]Reference `key:"references" names:"property"`
	// by property: of which property it is a copy
	Copies map[string]Copy `key:"copies" names:"property"`
	// by the name of the target store
	Map map[string]Mapping `key:"map"`
	// rules for properties
	Fields map[string]Field `key:"fields" names:"property"`
	// properties that are never sent to clients
	Private []string `key:"private" list:"names" is:"ownProperty"`
	// properties that clients can read but not set
	ReadOnly []string `key:"readOnly" list:"names" is:"ownProperty"`
	Reserved []string // properties that belfry alone sets
	// CEL expressions of properties that each write computes
	Computed map[string]string `key:"computed" names:"property" is:"expression"`
	// properties that lists can be filtered and sorted by
	Indexes [][]string `key:"indexes" is:"indexField"`
	// properties whose first text is the name of an object for people; none: see plan.Titles
	Title []string `key:"title" list:"names" is:"ownProperty"`
	// unique properties
	Unique    [][]string   `key:"unique" is:"ownProperty"`
	Search    Search       `key:"search"`
	Intercept Interceptors `key:"intercept" keys:"save update delete get register"`
	// bytes
	MaxObjectSize int64 `key:"maxObjectSize" is:"size 256KiB"`
	// operations over the bus
	Bus bool `key:"bus"`

	OwnersByDefault bool // Owner is set, and there is no policy: it is that of the owner

	_ struct{} `instead:"url=expose.url list=expose.list events=expose.events restrict=expose.restrict type=backend"`
}

// Expose is a store's HTTP routes.
type Expose struct {
	URL      string   `key:"url" is:"route"` // by default the name of the store in lower case
	Restrict Restrict `key:"restrict"`
	List     bool     `key:"list"` // GET URL lists

	// Events streams events to browsers. EventsAsList: only to those who may list the
	// objects as well, since the configuration names no receivers.
	Events       bool `key:"events"`
	EventsAsList bool
}

// Restrict names the routes that do not exist.
type Restrict struct {
	Create bool `key:"create"`
	Get    bool `key:"get"`
	Update bool `key:"update"`
	Delete bool `key:"delete"`
}

// Field holds the CEL expressions that say who may read and write a property. An empty
// expression allows everyone who may read and write the object.
type Field struct {
	Read  string `key:"read" is:"expression"`
	Write string `key:"write" is:"expression"`
}

// Interceptors are called before an operation is executed, by the operation.
type Interceptors map[string][]Interceptor

// Interceptor is one of them.
type Interceptor struct {
	Name    string        `key:"name" is:"name" required:"the name that the interceptor registers under"`
	Timeout time.Duration `key:"timeout" is:"duration 1ms 1m" default:"1s"`
	// what happens after a timeout or failure
	OnError string `key:"onError" is:"one reject accept" default:"reject"`
}

// Limits of a store.
const (
	maxComputed     = 32 // computed properties: each write evaluates all of them
	maxSearchFields = 8  // searched properties: each has an index of its own
	maxTitles       = 8  // properties of a name
)

// NeverRead reports whether a property never leaves the server.
func (s *Store) NeverRead(property string) bool {
	return slices.Contains(s.Private, property) || strings.TrimSpace(s.Fields[property].Read) == "false"
}

// ReadByAll reports whether everyone who may get an object may read a property.
func (s *Store) ReadByAll(property string) bool {
	rule := strings.TrimSpace(s.Fields[property].Read)
	return rule == "" || rule == "true"
}

// Hides reports whether some of those who may get an object may not read a property.
func (s *Store) Hides(property string) bool { return s.NeverRead(property) || !s.ReadByAll(property) }

// Ruled reports whether a policy decides about a store's objects, or they have owners.
func (s *Store) Ruled() bool { return s.Policy != Policy{} || s.Owner != "" }

// ServerUUIDs reports whether the server makes the uuids of the objects that clients create. A client that chose them
// could take the uuid of an object that others name, or named.
func (s *Store) ServerUUIDs() bool { return !s.ClientUUIDs && s.Ruled() }

// Validate refuses a field without rules.
func (f *Field) Validate(s *decode.Section) {
	if len(s.Keys()) == 0 {
		s.Problem("", "is empty; expected an expression for read, write or both")
	}
}

// Validate sets the default of events, which is that of lists.
func (e *Expose) Validate(s *decode.Section) {
	e.EventsAsList = !s.Has("events")
	if !s.Valid("events") {
		e.Events = e.List
	}
}

// Validate sets the default of the route, and checks what the keys of the store say by themselves.
func (s *Store) Validate(x *decode.Section) {
	s.Name = x.Name()
	for _, key := range []string{"defaults", "formats"} {
		if x.Has(key) && s.Schema == "" {
			x.Problem(key, "is about the schema of the store; add schema")
		}
	}
	for _, property := range names(s.Fields) {
		if slices.Contains(s.ReadOnly, property) {
			x.Problem(decode.Join("fields", property),
				"is in readOnly as well, which is short for a rule; remove one of them")
		}
	}
	s.checkIndexes(x)
	s.validateReferences(x)
	if len(s.Computed) > maxComputed {
		x.Problem("computed", "expected at most %d properties", maxComputed)
	}
	if len(s.Title) > maxTitles {
		x.Problem("title", "expected at most %d properties", maxTitles)
	}
	for _, operation := range names(s.Intercept) {
		var seen []string
		for i, one := range s.Intercept[operation] {
			if one.Name != "" && slices.Contains(seen, one.Name) {
				x.Problem(fmt.Sprintf("intercept.%s[%d].name", operation, i), "is already an interceptor of %s",
					operation)
			}
			seen = append(seen, one.Name)
		}
	}
	if s.Expose != nil && s.Expose.URL == "" {
		s.Expose.URL = "/" + strings.ToLower(s.Name)
	}
}

// Search selects the text in which lists search for words.
type Search struct {
	// none: the store has no index of its text
	Fields []string `key:"fields" list:"names" is:"textField" required:"the properties whose text is searched"`
	// of the text, whose words are found by their stems; "" for words as they are
	Language string `key:"language" is:"one ar cjk da de en es fi fr hu it nl no pt ro ru sv tr"`
	// results are ranked by how rare their words are in all texts, including those that the caller may not read
	Shared bool `key:"statistics" is:"either own shared"`
}

// Validate refuses too many properties, and none.
func (x *Search) Validate(s *decode.Section) {
	switch n := len(x.Fields); {
	case n > maxSearchFields:
		s.Problem("fields", "expected at most %d properties", maxSearchFields)
	case n == 0 && s.Has("fields"):
		s.Problem("fields", "expected at least one property")
	}
}
