package config

import (
	"errors"
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
	Policy        Policy
	Map           map[string]Mapping // by the name of the target store
	Private       []string           // properties that never leave the server
	ReadOnly      []string           // properties that clients see and can't set
	Indexes       [][]string         // what listing can filter and sort by
	Intercept     map[string][]Interceptor
	MaxObjectSize int64 // bytes
	Bus           bool  // operations over the bus
}

// Expose is a store's HTTP routes.
type Expose struct {
	URL      string
	Restrict Restrict
	List     bool // GET URL lists
}

// Restrict names the routes that do not exist.
type Restrict struct{ Create, Update, Delete, Get bool }

// Policy says who may do what, in CEL expressions. An expression that is "" is
// that of the owner's policy when Owner is set, and otherwise allows everyone.
type Policy struct {
	Owner                             bool
	Create, Get, Update, Delete, List string
}

// Mapping keeps a copy of each object in the object that its property Key names.
type Mapping struct {
	Key     string
	Target  string   // the property of the target object that holds the copies
	Fields  []string // what is copied besides uuid
	Cascade bool     // deleting the target deletes the objects
	Limit   int      // entries in one array
}

// Interceptor is asked before an operation takes place.
type Interceptor struct {
	Name    string
	Timeout time.Duration
	OnError string // "reject" or "accept": what its silence or failure means
}

// operations are what can be intercepted.
func operations() []string { return []string{"save", "update", "delete", "get", "register"} }

// readStores makes the stores of users and idents, and belfry's own, even when
// they are not in the file.
func (c *Config) readStores(s *section) {
	c.Stores = map[string]*Store{}
	s.named("stores", func(name string, s *section) { c.Stores[name] = c.readStore(name, s) })
	for _, name := range append(internalStores(), c.Authentication.UserStore, c.Authentication.IdentStore) {
		if c.Stores[name] == nil {
			c.checkCaseConflict(name)
			c.Stores[name] = c.readStore(name, newSection(c.doc, join("stores", name), nil))
		}
	}
}

// checkCaseConflict refuses a store that differs only in case from one that always exists.
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
	decode(s, "schema", &st.Schema, c.doc.existingFile)
	st.Policy = readPolicy(s)
	st.Map = map[string]Mapping{}
	s.named("map", func(target string, s *section) { st.Map[target] = readMapping(s) })
	st.Private = s.properties("private", parseOwnProperty)
	st.ReadOnly = s.properties("readOnly", parseOwnProperty)
	st.Indexes = readIndexes(s)
	st.Intercept = readIntercept(s.section("intercept"))
	decode(s, "maxObjectSize", &st.MaxObjectSize, sizeIn(MaxObjectSize))
	decode(s, "bus", &st.Bus, parseFlag)
	s.suggestions = map[string]string{"url": "expose.url", "list": "expose.list", "restrict": "expose.restrict", "type": "backend"}
	s.rejectUnknown()
	c.setLoginDefaults(st, s)
	return st
}

// busDefault is whether a store has operations over the bus without being told. What
// logging in believes has to be opened on purpose.
func (c *Config) busDefault(name string) bool {
	return name != c.Authentication.IdentStore && !slices.Contains(internalStores(), name)
}

// setLoginDefaults adds what the stores of users and idents have without being
// told. A password is private whatever else the list names. Idents are for
// their owners to read: logging in believes what is in them.
func (c *Config) setLoginDefaults(st *Store, s *section) {
	users, idents := c.Authentication.UserStore, c.Authentication.IdentStore
	if st.Name != users && st.Name != idents {
		return
	}
	if !s.has("policy") {
		st.Policy = Policy{Owner: true, Create: "false"}
	}
	if st.Name == users && !slices.Contains(st.Private, "password") {
		st.Private = append(st.Private, "password")
	}
	if st.Name == idents && st.Policy.Owner {
		st.Policy = Policy{Owner: true, Create: "false", Update: "false", Delete: "false"}
		if st.Expose != nil {
			st.Expose.Restrict.Update, st.Expose.Restrict.Delete = true, true
		}
	}
	if st.Name == idents && !s.has("map") {
		st.Map[users] = Mapping{Key: "user", Target: "idents", Fields: []string{"type"}, Cascade: true, Limit: defaultLimit}
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
	x.rejectUnknown()
	if !s.has("expose") {
		return nil
	}
	return e
}

// readPolicy takes a word or expressions. An empty policy is refused: it would
// allow everything while looking as if it did not.
func readPolicy(s *section) Policy {
	var p Policy
	if s.isScalar("policy") {
		word := ""
		decode(s, "policy", &word, ownerPolicy)
		return Policy{Owner: word != ""}
	}
	x := s.section("policy")
	decode(x, "create", &p.Create, parseNonEmpty)
	decode(x, "get", &p.Get, parseNonEmpty)
	decode(x, "update", &p.Update, parseNonEmpty)
	decode(x, "delete", &p.Delete, parseNonEmpty)
	decode(x, "list", &p.List, parseNonEmpty)
	x.rejectUnknown()
	if s.has("policy") && len(x.keys) == 0 {
		s.problem("policy", "is empty; expected owner, or an expression for one of create, get, update, delete, list")
	}
	return p
}

func ownerPolicy(text string) (string, error) {
	if text != "owner" {
		return "", errors.New("expected owner, or an expression each for create, get, update, delete, list")
	}
	return text, nil
}

const defaultLimit = 10_000

func readMapping(s *section) Mapping {
	m := Mapping{}
	limit := int64(defaultLimit)
	s.require("key", "the property that holds the target's uuid")
	s.require("target", "the property of the target that holds the copies")
	decode(s, "key", &m.Key, parseOwnProperty)
	decode(s, "target", &m.Target, parseOwnProperty)
	m.Fields = s.properties("fields", parseProperty)
	m.Fields = slices.DeleteFunc(m.Fields, func(name string) bool { return name == "uuid" })
	decode(s, "cascade", &m.Cascade, parseFlag)
	decode(s, "limit", &limit, numberIn(1, 100_000))
	m.Limit = int(limit)
	s.rejectUnknown()
	return m
}

func readIndexes(s *section) [][]string {
	var all [][]string
	for _, v := range s.list("indexes") {
		fields := s.doc.properties(v.split(), parseProperty)
		switch {
		case len(fields) == 0:
			if strings.TrimSpace(v.text) == "" {
				s.doc.problem(v.path, `expected a property, or several such as "author, year"`)
			}
		case slices.ContainsFunc(all, func(other []string) bool { return slices.Equal(other, fields) }):
			s.doc.problem(v.path, "is an index already")
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
			x.require("name", "the name that the interceptor answers to")
			decode(x, "name", &i.Name, parseName)
			decode(x, "timeout", &i.Timeout, durationIn(time.Millisecond, time.Minute, "from 1ms to 1m"))
			decode(x, "onError", &i.OnError, oneOf("reject", "accept"))
			x.rejectUnknown()
			if i.Name != "" && slices.Contains(seen, i.Name) {
				x.problem("name", "is asked for %s already", operation)
			}
			seen = append(seen, i.Name)
			all[operation] = append(all[operation], i)
		}
	}
	s.suffix = "of intercept"
	s.rejectUnknown()
	return all
}
