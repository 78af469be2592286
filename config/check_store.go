package config

import (
	"slices"
	"strings"

	"belfry/config/decode"
)

func (c *Config) checkStore(st *Store, path string, maintained maintained) {
	if _, ok := c.Backends[st.Backend]; !ok {
		c.doc.Problem(path+".backend", "no backend with this name; %s", decode.Known(names(c.Backends)))
	}
	if st.Name == c.Authentication.IdentStore && st.Expose != nil && st.Expose.List {
		c.doc.Problem(path+".expose.list",
			"is not for the store of idents: a list would tell the addresses of all accounts")
	}
	for _, target := range names(st.Map) {
		c.checkMapping(st, target, decode.Join(path+".map", target), maintained)
	}
	c.checkReferences(st, path, maintained)
	c.checkCopies(st, path, maintained)
	c.checkFields(st, path+".fields", maintained)
	c.checkComputed(st, path+".computed", maintained)
	if what := maintained[st.Name][st.Owner]; what.array() {
		c.doc.Problem(path+".owner", "is %s; the owner needs a property of its own", what)
	}
	for _, index := range st.Indexes {
		for _, field := range index {
			property, at := topProperty(field), path+".indexes"
			switch {
			case st.NeverRead(property):
				c.doc.Problem(at, "%s is private in %s; filtering by it would reveal its value",
					c.doc.Display(at, property), st.Name)
			case strings.HasSuffix(field, "[]") && maintained[st.Name][property].array():
				c.doc.Problem(at, "%s is the array of a mapping: its elements are objects, which are not compared",
					c.doc.Display(at, property))
			}
		}
	}
	c.checkUnique(st, path+".unique", maintained)
	c.checkSearch(st, path+".search")
	checkTitle(c, st, path+".title", maintained)
	if e := st.Expose; e != nil && e.Events && !e.EventsAsList {
		switch at := path + ".expose.events"; {
		case e.Restrict.Get:
			c.doc.Problem(at,
				"events contain what a get returns, which expose.restrict.get removes; remove one of them")
		case len(st.Intercept["get"]) > 0:
			c.doc.Problem(at,
				"the interceptors of get can't be called for each event and client; remove the key or the interceptors")
		}
	}
	if users := c.Authentication.UserStore; st.Intercept["register"] != nil && st.Name != users {
		c.doc.Problem(path+".intercept.register", "is called for the user store only, which is %s",
			c.doc.Display("authentication.userStore", users))
	}
}

// checkUnique refuses properties whose values must not be guessed, or that can't be unique.
func (c *Config) checkUnique(st *Store, path string, maintained maintained) {
	for _, fields := range st.Unique {
		for _, property := range fields {
			switch {
			case st.NeverRead(property):
				c.doc.Problem(path, "%s is private in %s; that a value is refused would reveal it",
					c.doc.Display(path, property), st.Name)
			case st.Hides(property):
				c.doc.Problem(path, "%s has a read rule in %s; that a value is refused would reveal it to those who "+
					"may not read it: remove the rule, or the property here",
					c.doc.Display(path, property), st.Name)
			case maintained[st.Name][property].array():
				c.doc.Problem(path, "%s is the array of a mapping, and arrays can't be unique",
					c.doc.Display(path, property))
			case maintained[st.Name][property].path != "":
				c.doc.Problem(path, "%s is %s, which workers write: if another object had the value, they could not "+
					"write it", c.doc.Display(path, property), maintained[st.Name][property])
			}
		}
	}
	if len(st.Unique) > 0 && Internal(st.Name) {
		c.doc.Problem(path, "is not for %s, which is belfry's own", st.Name)
	}
}

// checkFields refuses rules that contradict the short forms, and write rules for what
// belfry itself writes.
func (c *Config) checkFields(st *Store, path string, maintained maintained) {
	for _, property := range names(st.Fields) {
		at := decode.Join(path, property)
		if slices.Contains(st.Private, property) {
			c.doc.Problem(at, "is private as well, which is short for a rule; remove one of them")
		}
		if st.Fields[property].Write == "" {
			continue
		}
		switch {
		case slices.Contains(st.Reserved, property):
			c.doc.Problem(at+".write", "is not for a property that belfry alone sets; remove the rule")
		case maintained[st.Name][property].kind == ofCopy: // reported
		case maintained[st.Name][property].path != "":
			c.doc.Problem(at+".write", "is not for %s, which alone writes it; remove the rule",
				maintained[st.Name][property])
		case property == st.Owner:
			c.doc.Problem(at+".write", "is not for the owner, which the server sets; remove the rule")
		}
	}
}

// checkComputed refuses computed properties that something else sets, and those of stores whose objects belfry manages.
func (c *Config) checkComputed(st *Store, path string, maintained maintained) {
	if len(st.Computed) > 0 && (slices.Contains(internalStores(), st.Name) || st.Name == c.Authentication.IdentStore) {
		c.doc.Problem(path, "is not for a store whose objects belfry manages")
	}
	for _, property := range names(st.Computed) {
		at := decode.Join(path, property)
		switch {
		case slices.Contains(st.Reserved, property) || property == "password" && st.Name == c.Authentication.UserStore:
			c.doc.Problem(at, "belfry alone sets it; choose another property")
		case maintained[st.Name][property].kind == ofCopy: // reported
		case maintained[st.Name][property].path != "":
			c.doc.Problem(at, "is %s, which alone writes it; choose another property", maintained[st.Name][property])
		case property == st.Owner:
			c.doc.Problem(at, "is the owner, which the server sets; choose another property")
		case slices.Contains(st.ReadOnly, property):
			c.doc.Problem(at, "is in readOnly as well; clients never set a computed property, so remove it there")
		case st.Fields[property].Write != "":
			c.doc.Problem(at, "has a write rule, and clients never set a computed property; remove the rule")
		}
	}
}

// checkSearch refuses properties whose text must not be found.
func (c *Config) checkSearch(st *Store, path string) {
	if len(st.Search.Fields) > 0 && (Internal(st.Name) || st.Name == c.Authentication.IdentStore) {
		c.doc.Problem(path, "is not for a store whose objects belfry manages")
	}
	for _, field := range st.Search.Fields {
		if property := topProperty(field); st.NeverRead(property) {
			at := path + ".fields"
			c.doc.Problem(at, "%s is private in %s; what is found would reveal its text", c.doc.Display(at, property),
				st.Name)
		}
	}
}

// checkTitle refuses properties that are not to be read, or that have no text.
func checkTitle(c *Config, st *Store, path string, maintained maintained) {
	if len(st.Title) > 0 && Internal(st.Name) {
		c.doc.Problem(path, "is not for %s, which is belfry's own", st.Name)
	}
	for _, property := range st.Title {
		switch {
		case st.NeverRead(property):
			c.doc.Problem(path, "%s is private in %s; a name would reveal its value", c.doc.Display(path, property),
				st.Name)
		case maintained[st.Name][property].array():
			c.doc.Problem(path, "%s is the array of a mapping, and a name is a text", c.doc.Display(path, property))
		}
	}
}

// topProperty returns the top-level property of a field of an index.
func topProperty(field string) string {
	name, _, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(field, "-"), "[]"), ".")
	return name
}
