package config

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Store is a store of objects.
type Store struct {
	Name          string
	Backend       string  // a key of Config.Backends
	Expose        *Expose // nil when the store has no HTTP routes
	Schema        string  // path of a JSON Schema; "" for none
	Defaults      bool    // new objects get the values of default in the schema
	Formats       bool    // the schema's format is asserted
	Policy        Policy
	Owner         string             // the property with the uuid of the user to whom an object belongs; "" for none
	ClientUUIDs   bool               // clients may choose the uuids of new objects although there is a policy or an owner
	Map           map[string]Mapping // by the name of the target store
	Fields        map[string]Field   // rules for properties
	Private       []string           // properties that are never sent to clients
	ReadOnly      []string           // properties that clients can read but not set
	Reserved      []string           // properties that belfry alone sets
	Computed      map[string]string  // CEL expressions of properties that each write computes
	Indexes       [][]string         // properties that lists can be filtered and sorted by
	Unique        [][]string         // properties whose values no two objects have in common
	Search        Search             // what lists find objects by the words of
	Intercept     map[string][]Interceptor
	MaxObjectSize int64 // bytes
	Bus           bool  // operations over the bus

	OwnersByDefault bool // Owner is set, and there is no policy: it is that of the owner
}

// Expose is a store's HTTP routes.
type Expose struct {
	URL      string
	Restrict Restrict
	List     bool // GET URL lists

	// Events streams events to browsers. EventsAsList: only to those who may list the
	// objects as well, since the configuration does not say who receives them.
	Events, EventsAsList bool
}

// Restrict names the routes that do not exist.
type Restrict struct{ Create, Update, Delete, Get bool }

// Field holds the CEL expressions that say who may read and write a property. An empty
// expression allows everyone who may read and write the object.
type Field struct{ Read, Write string }

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

// Mapping maintains a copy of each object in the object that its property Key
// refers to.
type Mapping struct {
	Key     string
	Target  string   // the property of the target object that holds the copies
	Fields  []string // properties copied besides uuid
	Cascade bool     // deleting the target object deletes the objects that refer to it
	Limit   int      // entries in one array

	MaxBytes int64 // of one array

	SameOwner bool // only objects that have the owner of the target have a copy

	When string // CEL over source: objects for which it does not hold have no copy; "" for none
}

// Interceptor is called before an operation is executed.
type Interceptor struct {
	Name    string
	Timeout time.Duration
	OnError string // "reject" or "accept": the result of a timeout or failure
}

// operations returns the names of the operations that can be intercepted.
func operations() []string { return []string{"save", "update", "delete", "get", "register"} }

// DeclaredStores returns the names of the stores that the configuration has, sorted; Stores also has those that belfry adds.
func (c *Config) DeclaredStores() []string { return slices.Clone(c.declared) }

// readStores adds the stores of users and idents and the internal stores when they
// are not in the file.
func (c *Config) readStores(s *section) {
	c.Stores = map[string]*Store{}
	s.named("stores", func(name string, s *section) { c.Stores[name] = c.readStore(name, s) })
	c.declared = slices.Sorted(maps.Keys(c.Stores))
	for _, name := range append(internalStores(), c.Authentication.UserStore, c.Authentication.IdentStore) {
		if c.Stores[name] == nil {
			c.checkCaseConflict(name)
			c.Stores[name] = c.readStore(name, newSection(c.doc, join("stores", name), nil))
		}
	}
	c.hideIdents()
}

// hideIdents has the idents that are copied into users seen by the user alone, unless the configuration says who reads
// them: their uuids contain addresses.
func (c *Config) hideIdents() {
	users := c.Stores[c.Authentication.UserStore]
	m, copied := c.Stores[c.Authentication.IdentStore].Map[users.Name]
	_, known := users.Fields[m.Target]
	if !copied || known || m.Target == "" || slices.Contains(users.Private, m.Target) {
		return
	}
	users.Fields[m.Target] = Field{Read: "isOwner"}
}

// readFields reads the rules of properties.
func readFields(s *section) map[string]Field {
	all := map[string]Field{}
	for _, name := range s.keys {
		property, err := parseOwnProperty(name)
		if err != nil {
			s.problem(name, "%v", err)
		}
		x := s.section(name)
		var f Field
		decode(x, "read", &f.Read, parseNonEmpty)
		decode(x, "write", &f.Write, parseNonEmpty)
		x.rejectUnknown()
		if len(x.keys) == 0 {
			s.problem(name, "is empty; expected an expression for read, write or both")
		}
		if err == nil {
			all[property] = f
		}
	}
	return all
}

// checkCaseConflict refuses a store that differs only in case from a built-in one.
func (c *Config) checkCaseConflict(builtin string) {
	for _, name := range names(c.Stores) {
		if strings.EqualFold(name, builtin) {
			c.doc.problem(join("stores", name), "differs only in case from %s, which always exists", builtin)
		}
	}
}

func (c *Config) readStore(name string, s *section) *Store {
	st := &Store{Name: name, Backend: "default", MaxObjectSize: c.MaxObjectSize, Bus: c.busDefault(name)}
	decode(s, "backend", &st.Backend, parseName)
	st.Expose = readExpose(name, s)
	readPath(s, "schema", &st.Schema, ReadFile)
	decode(s, "defaults", &st.Defaults, parseFlag)
	decode(s, "formats", &st.Formats, parseFlag)
	for _, key := range []string{"defaults", "formats"} {
		if s.has(key) && st.Schema == "" {
			s.problem(key, "is about the schema of the store; add schema")
		}
	}
	st.Policy = readPolicy(s)
	decode(s, "owner", &st.Owner, parseOwnProperty)
	decode(s, "uuid", &st.ClientUUIDs, parseUUIDChoice)
	st.Map = map[string]Mapping{}
	s.named("map", func(target string, s *section) { st.Map[target] = readMapping(s) })
	st.Fields = readFields(s.section("fields"))
	st.Private = s.properties("private", parseOwnProperty)
	st.ReadOnly = s.properties("readOnly", parseOwnProperty)
	for _, property := range names(st.Fields) {
		if slices.Contains(st.ReadOnly, property) {
			s.doc.problem(join(join(s.path, "fields"), property), "is in readOnly as well, which is short for a rule; remove one of them")
		}
	}
	st.Computed = readComputed(s.section("computed"))
	st.Indexes = readIndexes(s)
	st.Unique = readUnique(s)
	st.Search = readSearch(s.section("search"))
	st.Intercept = readIntercept(s.section("intercept"))
	decode(s, "maxObjectSize", &st.MaxObjectSize, sizeIn(MaxObjectSize))
	decode(s, "bus", &st.Bus, parseFlag)
	s.suggestions = map[string]string{"url": "expose.url", "list": "expose.list", "events": "expose.events", "restrict": "expose.restrict", "type": "backend"}
	s.rejectUnknown()
	c.setLoginDefaults(st, s)
	c.setOwner(st, s)
	return st
}

// parseUUIDChoice reads who chooses the uuids of new objects.
func parseUUIDChoice(text string) (clients bool, err error) {
	who, err := oneOf("server", "client")(text)
	return who == "client", err
}

// Ruled reports whether a policy decides about a store's objects, or they have owners.
func (s *Store) Ruled() bool { return s.Policy != Policy{} || s.Owner != "" }

// ServerUUIDs reports whether the server makes the uuids of the objects that clients create. A client that chose them
// could take the uuid of an object that others name, or named.
func (s *Store) ServerUUIDs() bool { return !s.ClientUUIDs && s.Ruled() }

// setOwner sets the default of the owner, and indexes objects by it. Users are their own owners.
func (c *Config) setOwner(st *Store, s *section) {
	if st.Name == c.Authentication.UserStore {
		if st.Owner != "" {
			s.problem("owner", "is not for the user store: every user is their own owner")
		}
		return
	}
	switch {
	case st.Owner == "" && st.Policy.Owner:
		st.Owner = "user"
	case st.Owner != "" && !s.has("policy"): // objects with owners that everyone may change would have them for nothing
		st.Policy.Owner, st.OwnersByDefault = true, st.Name != c.Authentication.IdentStore
	}
	indexed := slices.ContainsFunc(st.Indexes, func(fields []string) bool { return slices.Equal(fields, []string{st.Owner}) })
	if st.Owner != "" && !indexed && !st.NeverRead(st.Owner) && st.Name != c.Authentication.IdentStore {
		st.Indexes = append(st.Indexes, []string{st.Owner})
	}
}

// OwnerField returns the property that holds the owner's uuid of a store's objects: the uuid itself in the user store,
// and "" where objects have no owner.
func (c *Config) OwnerField(store string) string {
	if store == c.Authentication.UserStore {
		return "uuid"
	}
	return c.Stores[store].Owner
}

// busDefault reports whether a store has operations over the bus by default. The
// stores that authentication trusts have to be opened explicitly.
func (c *Config) busDefault(name string) bool {
	return name != c.Authentication.IdentStore && !slices.Contains(internalStores(), name)
}

// setLoginDefaults sets the defaults of the stores of users and idents. A password
// is always private. With the owner policy, owners can only read their idents,
// because authentication trusts them.
func (c *Config) setLoginDefaults(st *Store, s *section) {
	users, idents := c.Authentication.UserStore, c.Authentication.IdentStore
	if st.Name != users && st.Name != idents {
		return
	}
	if !s.has("policy") {
		st.Policy = Policy{Owner: true, Create: "false"}
	}
	if st.Name == users {
		st.Reserved = []string{"admin", "disabled"}
		if !slices.Contains(st.Private, "password") {
			st.Private = append(st.Private, "password")
		}
	}
	if st.Name == idents && st.Policy.Owner {
		st.Policy = Policy{Owner: true, Create: "false", Update: "false", Delete: "false"}
		if st.Expose != nil {
			c.restrictIdents(st.Expose, s.path+".expose.restrict")
		}
	}
	if st.Name == idents && !s.has("map") {
		st.Map[users] = Mapping{Key: "user", Target: "idents", Fields: []string{"type"}, Cascade: true, Limit: defaultLimit, MaxBytes: defaultArrayBytes}
	}
}

// restrictIdents removes the routes by which idents would be written, which the policy of the owner allows nobody. Who says in the file
// that there are some expects to be able to.
func (c *Config) restrictIdents(e *Expose, path string) {
	for _, of := range []struct {
		key        string
		restricted *bool
	}{{"create", &e.Restrict.Create}, {"update", &e.Restrict.Update}, {"delete", &e.Restrict.Delete}} {
		if at := join(path, of.key); c.doc.isSet(at) && !*of.restricted {
			c.doc.problem(at, "idents are read by their owner and written by nobody, since logins trust them: remove the key, or write rules: a policy with one for %s", of.key)
		}
		*of.restricted = true
	}
}

func readExpose(store string, s *section) *Expose {
	e := &Expose{URL: "/" + strings.ToLower(store)}
	x := s.section("expose")
	decode(x, "url", &e.URL, parseRoute)
	restrict := x.section("restrict")
	decode(restrict, "create", &e.Restrict.Create, parseFlag)
	decode(restrict, "get", &e.Restrict.Get, parseFlag)
	decode(restrict, "update", &e.Restrict.Update, parseFlag)
	decode(restrict, "delete", &e.Restrict.Delete, parseFlag)
	restrict.rejectUnknown()
	decode(x, "list", &e.List, parseFlag)
	e.Events, e.EventsAsList = e.List, !x.has("events")
	decode(x, "events", &e.Events, parseFlag)
	x.rejectUnknown()
	if !s.has("expose") {
		return nil
	}
	return e
}

// Limits of a mapped array.
const (
	defaultLimit      = 10_000
	defaultArrayBytes = 1 << 20
	maxArrayBytes     = 16 << 20
)

func readMapping(s *section) Mapping {
	m := Mapping{MaxBytes: defaultArrayBytes}
	limit := int64(defaultLimit)
	s.require("key", "the property that holds the target's uuid")
	s.require("target", "the property of the target that holds the copies")
	decode(s, "key", &m.Key, parseOwnProperty)
	decode(s, "target", &m.Target, parseOwnProperty)
	m.Fields = s.properties("fields", parseProperty)
	m.Fields = slices.DeleteFunc(m.Fields, func(name string) bool { return name == "uuid" })
	decode(s, "cascade", &m.Cascade, parseFlag)
	decode(s, "limit", &limit, numberIn(1, 100_000))
	decode(s, "maxBytes", &m.MaxBytes, sizeIn(maxArrayBytes))
	decode(s, "when", &m.When, parseNonEmpty)
	decode(s, "sameOwner", &m.SameOwner, parseFlag)
	m.Limit = int(limit)
	s.rejectUnknown()
	return m
}

// maxIndexFields is how many properties an index has at most.
const maxIndexFields = 4

func readIndexes(s *section) [][]string {
	var all [][]string
	for _, v := range s.list("indexes") {
		fields := s.doc.properties(v.split(), parseIndexField)
		switch {
		case len(fields) == 0:
			if strings.TrimSpace(v.text) == "" {
				s.doc.problem(v.path, `expected a property, or several such as "author, year"`)
			}
		case len(fields) > maxIndexFields:
			s.doc.problem(v.path, "expected at most %d properties", maxIndexFields)
		case len(slices.DeleteFunc(slices.Clone(fields), func(f string) bool { return !strings.HasSuffix(f, "[]") })) > 1:
			s.doc.problem(v.path, "has the elements of two arrays; an index has those of one at most")
		case slices.ContainsFunc(all, func(other []string) bool { return slices.Equal(other, fields) }):
			s.doc.problem(v.path, "is a duplicate index")
		default:
			all = append(all, fields)
		}
	}
	return all
}

func readIntercept(s *section) map[string][]Interceptor {
	all := map[string][]Interceptor{}
	for _, operation := range operations() {
		var seen []string
		for _, x := range s.sections(operation) {
			i := Interceptor{Timeout: time.Second, OnError: "reject"}
			x.require("name", "the name that the interceptor registers under")
			decode(x, "name", &i.Name, parseName)
			decode(x, "timeout", &i.Timeout, durationIn(time.Millisecond, time.Minute, "from 1ms to 1m"))
			decode(x, "onError", &i.OnError, oneOf("reject", "accept"))
			x.rejectUnknown()
			if i.Name != "" && slices.Contains(seen, i.Name) {
				x.problem("name", "is already an interceptor of %s", operation)
			}
			seen = append(seen, i.Name)
			all[operation] = append(all[operation], i)
		}
	}
	s.suffix = "of intercept"
	s.rejectUnknown()
	return all
}
