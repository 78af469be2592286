package config

import (
	"slices"

	"belfry/config/decode"
)

// Mapping maintains a copy of each object in the object that its property Key
// refers to.
type Mapping struct {
	Key string `key:"key" is:"ownProperty" required:"the property that holds the target's uuid"`
	// the property of the target object that holds the copies
	Target string `key:"target" is:"ownProperty" required:"the property of the target that holds the copies"`
	// properties copied besides uuid
	Fields []string `key:"fields" list:"names" is:"property"`
	// deleting the target object deletes the objects that refer to it
	Cascade bool `key:"cascade"`
	// entries in one array
	Limit int `key:"limit" is:"number 1 100000" default:"10000"`

	MaxBytes int64 `key:"maxBytes" is:"size 16MiB" default:"1MiB"` // of one array

	// CEL over source: objects for which it does not hold have no copy; "" for none
	When string `key:"when" is:"nonempty"`

	SameOwner bool `key:"sameOwner"` // only objects that have the owner of the target have a copy
}

// Limits of the array of a mapping that belfry adds.
const (
	defaultLimit      = 10_000
	defaultArrayBytes = 1 << 20
)

// Validate removes the uuid from the fields: every copy has it.
func (m *Mapping) Validate(*decode.Section) {
	m.Fields = slices.DeleteFunc(m.Fields, func(name string) bool { return name == "uuid" })
}

func (c *Config) checkMapping(st *Store, target, path string, arrays arrays) {
	m := st.Map[target]
	if c.Stores[target] == nil {
		c.doc.Problem(path, "no store with this name; %s", decode.Known(c.KnownStores()))
	} else if at := path + ".target"; slices.Contains(c.Stores[target].Reserved, m.Target) {
		c.doc.Problem(at, "belfry alone sets %s of %s; choose another property", c.doc.Display(at, m.Target), target)
	} else if c.Stores[target].NeverRead(m.Target) {
		c.doc.Problem(at, "%s is private in %s; clients could not read the copies", c.doc.Display(at, m.Target), target)
	}
	if m.SameOwner && c.Stores[target] != nil {
		c.checkSameOwner(st.Name, target, path+".sameOwner", m.Target)
	}
	if o := c.Stores[target]; o != nil && st.Name == c.Authentication.IdentStore && o.Fields[m.Target].Read == "" {
		c.doc.Problem(path+
			".target", "holds the uuids of idents, which contain addresses; say who may read them: add a read rule "+
			"for %s to stores.%s.fields",
			c.doc.Display(path+".target", m.Target), target)
	}
	source := func(at, property string) {
		displayed := c.doc.Display(at, property)
		if arrays[st.Name][property] != "" {
			c.doc.Problem(at, "%s is an array that a mapping maintains; copies of it would not be updated", displayed)
		}
		switch {
		case st.NeverRead(property):
			c.doc.Problem(at, "%s is private in %s and cannot be mapped", displayed, st.Name)
		case !st.ReadByAll(property) && c.Stores[target] != nil && c.Stores[target].Fields[m.Target].Read == "":
			c.doc.Problem(at, "%s has a read rule in %s, which the copies don't follow; say who may read them: add a "+
				"read rule for %s to stores.%s.fields",
				displayed, st.Name, c.doc.Display(path+".target", m.Target), target)
		}
	}
	source(path+".key", m.Key)
	for _, field := range m.Fields {
		source(path+".fields", field)
	}
}

// checkSameOwner refuses a mapping by owners if the objects of either store have no owner. The events of a target must
// contain its owner, because a cascade selects the objects to delete by it. An entry reveals that both owners are
// equal.
func (c *Config) checkSameOwner(source, target, at, array string) {
	for _, name := range slices.Compact([]string{source, target}) {
		switch owner := c.OwnerField(name); {
		case owner == "":
			c.doc.Problem(at, "the objects of %s have no owner; add owner to that store, with the property that "+
				"holds the owner's uuid, or remove this key", name)
		case name == target && c.Stores[name].NeverRead(owner): // below
		case c.Stores[name].Hides(owner) && c.Stores[target].Fields[array].Read == "":
			c.doc.Problem(at, "not everyone may read %s in %s, and an entry reveals it; say who may read the "+
				"entries: add a read rule for %s to stores.%s.fields", owner, name, array, target)
		}
	}
	if owner := c.OwnerField(target); owner != "" && c.Stores[target].NeverRead(owner) {
		c.doc.Problem(at, "%s never leaves the server in %s: whose objects to delete with a target could not be "+
			"decided; make it readable or remove this key", owner, target)
	}
}

// arrays holds, for each store and property that is a mapping's target, the path of
// the mapping.
type arrays map[string]map[string]string

// checkTargets refuses two mappings into one array and returns all arrays.
func (c *Config) checkTargets() arrays {
	all := arrays{}
	for _, name := range names(c.Stores) {
		for _, target := range names(c.Stores[name].Map) {
			property := c.Stores[name].Map[target].Target
			if property == "" {
				continue
			}
			if all[target] == nil {
				all[target] = map[string]string{}
			}
			path := decode.Join(decode.Join("stores", name)+".map", target)
			if other := all[target][property]; other != "" {
				at := path + ".target"
				c.doc.Problem(at, "%s of %s is already the target of %s", c.doc.Display(at, property), target, other)
				continue
			}
			all[target][property] = path
		}
	}
	return all
}
