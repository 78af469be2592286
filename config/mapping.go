package config

import (
	"slices"
	"strings"

	"belfry/config/decode"
	"belfry/config/value"
)

// Mapping maintains a copy of each object in the object that its property Key
// refers to.
type Mapping struct {
	Key string `key:"key" is:"ownProperty" required:"the property that holds the target's uuid"`
	// the property of the target object that holds the copies
	// it may be missing if there are aggregates
	Target string `key:"target" is:"ownProperty"`
	// properties copied besides uuid
	Fields []string `key:"fields" list:"names" is:"property"`
	// deleting the target object deletes the objects that refer to it
	Cascade bool `key:"cascade"`
	// entries in one array
	Limit int `key:"limit" is:"number 1 100000" default:"10000"`

	MaxBytes int64 `key:"maxBytes" is:"size 16MiB" default:"1MiB"` // of one array

	// CEL over source: objects for which it does not hold have no copy; "" for none
	When string `key:"when" is:"expression"`

	SameOwner bool `key:"sameOwner"` // only objects that have the owner of the target have a copy

	// by property of the target object: a function of the objects that refer to it
	Aggregates map[string]string `key:"aggregates" names:"property" is:"aggregate"`
}

// Limits of the array of a mapping that belfry adds.
const (
	defaultLimit      = 10_000
	defaultArrayBytes = 1 << 20
)

// maxAggregates is the number of aggregates of a mapping.
const maxAggregates = 16

// Validate removes the uuid from the fields: every copy has it. It checks what the keys say together.
func (m *Mapping) Validate(s *decode.Section) {
	m.Fields = slices.DeleteFunc(m.Fields, func(name string) bool { return name == "uuid" })
	if !s.IsSet() {
		return
	}
	if len(m.Aggregates) > maxAggregates {
		s.Problem("aggregates", "expected at most %d properties", maxAggregates)
	}
	if s.Has("target") || len(m.Aggregates) == 0 {
		if !s.Has("target") && s.Fine("aggregates") {
			s.Problem("target", "is missing; expected the property of the target that holds the copies, or aggregates")
		}
		return
	}
	for _, key := range []string{"fields", "limit", "maxBytes"} {
		if s.Has(key) {
			s.Problem(key, "is about the array of the mapping; add target")
		}
	}
}

func (c *Config) checkMapping(st *Store, target, path string, maintained maintained) {
	m, into := st.Map[target], c.Stores[target]
	if into == nil {
		c.doc.Problem(path, "no store with this name; %s", decode.Known(c.KnownStores()))
	}
	properties := names(m.Aggregates)
	if m.Target != "" {
		properties = append(properties, m.Target)
	}
	for _, property := range properties {
		at := path + ".target"
		if m.Aggregates[property] != "" {
			at = decode.Join(path+".aggregates", property)
		}
		if into != nil {
			c.checkMapped(into, property, at)
		}
	}
	if m.SameOwner && into != nil {
		c.checkSameOwner(st.Name, target, path+".sameOwner", properties)
	}
	if st.Name == c.Authentication.IdentStore && m.Target != "" && into != nil && into.Fields[m.Target].Read == "" {
		c.doc.Problem(path+
			".target", "holds the uuids of idents, which contain addresses; say who may read them: add a read rule "+
			"for %s to stores.%s.fields",
			c.doc.Display(path+".target", m.Target), target)
	}
	source := func(at, property string, into ...string) {
		c.checkMappedFrom(st, target, at, property, into, maintained)
	}
	source(path+".key", m.Key, properties...)
	for _, field := range m.Fields {
		source(path+".fields", field, m.Target)
	}
	for _, name := range names(m.Aggregates) {
		if _, field := value.Aggregate(m.Aggregates[name]); field != "" {
			source(decode.Join(path+".aggregates", name), field, name)
		}
	}
}

// checkMapped refuses a property for an array or an aggregate that clients could not read, or that belfry sets.
func (c *Config) checkMapped(into *Store, property, at string) {
	displayed := c.doc.Display(at, property)
	switch {
	case slices.Contains(into.Reserved, property):
		c.doc.Problem(at, "belfry alone sets %s of %s; choose another property", displayed, into.Name)
	case into.NeverRead(property) && strings.HasSuffix(at, ".target"):
		c.doc.Problem(at, "%s is private in %s; clients could not read the copies", displayed, into.Name)
	case strings.HasSuffix(at, ".target"): // checked with the other properties of the store
	case property == into.Owner || into.Name == c.Authentication.UserStore && property == "password":
		c.doc.Problem(at, "the server sets %s of %s; choose another property", displayed, into.Name)
	}
}

// checkMappedFrom refuses a mapping of a property that its readers in the target may not see.
func (c *Config) checkMappedFrom(st *Store, target, at, property string, into []string, maintained maintained) {
	displayed := c.doc.Display(at, property)
	if maintained[st.Name][property].array() {
		c.doc.Problem(at, "%s is an array that a mapping maintains; copies of it would not be updated", displayed)
	}
	if st.NeverRead(property) {
		c.doc.Problem(at, "%s is private in %s and cannot be mapped", displayed, st.Name)
		return
	}
	if st.ReadByAll(property) || c.Stores[target] == nil {
		return
	}
	for _, name := range into {
		if c.Stores[target].Fields[name].Read == "" {
			c.doc.Problem(at, "%s has a read rule in %s, which the copies don't follow; say who may read them: add a "+
				"read rule for %s to stores.%s.fields",
				displayed, st.Name, name, target)
		}
	}
}

// checkSameOwner refuses a mapping by owners if the objects of either store have no owner. The events of a target must
// contain its owner, because a cascade selects the objects to delete by it. An entry, or an aggregate, reveals that
// both owners are equal.
func (c *Config) checkSameOwner(source, target, at string, into []string) {
	for _, name := range slices.Compact([]string{source, target}) {
		owner := c.OwnerField(name)
		switch {
		case owner == "":
			c.doc.Problem(at, "the objects of %s have no owner; add owner to that store, with the property that "+
				"holds the owner's uuid, or remove this key", name)
			continue
		case name == target && c.Stores[name].NeverRead(owner): // below
			continue
		}
		for _, property := range into {
			if c.Stores[name].Hides(owner) && c.Stores[target].Fields[property].Read == "" {
				c.doc.Problem(at, "not everyone may read %s in %s, and an entry reveals it; say who may read the "+
					"entries: add a read rule for %s to stores.%s.fields", owner, name, property, target)
			}
		}
	}
	if owner := c.OwnerField(target); owner != "" && c.Stores[target].NeverRead(owner) {
		c.doc.Problem(at, "%s never leaves the server in %s: whose objects to delete with a target could not be "+
			"decided; make it readable or remove this key", owner, target)
	}
}

// maintained holds, for each store and property that mappings and copies maintain, what maintains it.
type maintained map[string]map[string]maintainer

// maintainer is what maintains a property.
type maintainer struct {
	path string // of the key
	kind string
}

// The kinds of a maintainer.
const (
	ofArray     = "the array of a mapping"
	ofAggregate = "an aggregate of a mapping"
	ofCopy      = "a copy"
)

func (m maintainer) String() string { return m.kind }

// array reports whether the property is the array of a mapping.
func (m maintainer) array() bool { return m.kind == ofArray }

// checkMaintained refuses two that maintain one property, and returns all of them.
func (c *Config) checkMaintained() maintained {
	all := maintained{}
	add := func(store, property string, m maintainer) {
		if all[store] == nil {
			all[store] = map[string]maintainer{}
		}
		other, taken := all[store][property]
		if !taken {
			all[store][property] = m
			return
		}
		c.doc.Problem(m.path, "%s of %s is already the target of %s", c.doc.Display(m.path, property), store,
			strings.TrimSuffix(other.path, ".target"))
	}
	for _, name := range names(c.Stores) {
		for _, target := range names(c.Stores[name].Map) {
			m, path := c.Stores[name].Map[target], decode.Join(decode.Join("stores", name)+".map", target)
			if m.Target != "" {
				add(target, m.Target, maintainer{path + ".target", ofArray})
			}
			for _, property := range names(m.Aggregates) {
				add(target, property, maintainer{decode.Join(path+".aggregates", property), ofAggregate})
			}
		}
	}
	for _, name := range names(c.Stores) {
		for _, property := range names(c.Stores[name].Copies) {
			add(name, property, maintainer{decode.Join(decode.Join("stores", name)+".copies", property), ofCopy})
		}
	}
	return all
}
