package config

import (
	"slices"
	"strings"

	"belfry/config/decode"
)

// Reference says that a property holds the uuid of an object of a store, or an array of such uuids.
type Reference struct {
	Store string `key:"store" word:"true" is:"name" required:"the store whose objects the property names"`
	// the property names objects that exist
	Required bool `key:"required"`
	// what a deletion of the named object does with those that name it
	OnDelete string `key:"onDelete" is:"one keep restrict clear cascade" default:"keep"`
}

// The values of Reference.OnDelete.
const (
	OnDeleteKeep     = "keep"     // nothing
	OnDeleteRestrict = "restrict" // the deletion is refused
	OnDeleteClear    = "clear"    // the property no longer names the object
	OnDeleteCascade  = "cascade"  // the objects are deleted, too
)

// Copy keeps the value of a property of the object that a reference names.
type Copy struct {
	From string `key:"from" word:"true" is:"copied" required:"a reference and a property of its object: author.name"`
	Read string `key:"read" is:"expression"` // CEL: who may read the copy
}

// Source returns the reference of a copy, and the property of the object that it names.
func (c Copy) Source() (reference, property string) {
	reference, property, _ = strings.Cut(c.From, ".")
	return reference, property
}

// Limits of a store: each write reads the objects that the references of copies and required references name.
const (
	maxReferences = 16
	maxCopies     = 32
)

// validateReferences completes references that are only the name of a store, and checks what the keys of the store say
// by themselves.
func (s *Store) validateReferences(x *decode.Section) {
	for name, r := range s.References {
		if r.OnDelete == "" {
			r.OnDelete = OnDeleteKeep
			s.References[name] = r
		}
		if r.Required && r.OnDelete == OnDeleteClear {
			x.Problem(decode.Join("references", name)+".onDelete",
				"clear would leave a required property without an object; choose restrict or cascade, or remove "+
					"required")
		}
	}
	if len(s.References) > maxReferences {
		x.Problem("references", "expected at most %d properties", maxReferences)
	}
	if len(s.Copies) > maxCopies {
		x.Problem("copies", "expected at most %d properties", maxCopies)
	}
	for _, name := range names(s.Copies) {
		c, at := s.Copies[name], decode.Join("copies", name)
		if c.Read == "" {
			continue
		}
		f := s.Fields[name]
		if f.Read != "" {
			x.Problem(at+".read", "fields.%s.read says it, too; remove one of them", name)
			continue
		}
		f.Read = c.Read
		if s.Fields == nil {
			s.Fields = map[string]Field{}
		}
		s.Fields[name] = f
	}
}

// OnDelete returns what happens to the objects of a store that name a deleted object by a property: what the reference
// says, or a mapping with this key that cascades. Without a reference or such a mapping it is keep.
func (s *Store) OnDelete(property string) string {
	r, declared := s.References[property]
	if m := s.Map[r.Store]; declared && r.OnDelete == OnDeleteKeep && m.Key == property && m.Cascade {
		return OnDeleteCascade
	}
	if !declared {
		return OnDeleteKeep
	}
	return r.OnDelete
}

func (c *Config) checkReferences(st *Store, path string, maintained maintained) {
	managed := Internal(st.Name) || st.Name == c.Authentication.IdentStore
	for _, property := range names(st.References) {
		r, at := st.References[property], decode.Join(path+".references", property)
		if !c.doc.IsSet(at+".store") && !c.doc.IsSet(at) {
			continue
		}
		what := maintained[st.Name][property]
		switch {
		case managed:
			c.doc.Problem(at, "is not for a store whose objects belfry manages")
		case r.Store == "": // reported
		case c.Stores[r.Store] == nil:
			c.doc.Problem(at, "no store with this name; %s", decode.Known(c.KnownStores()))
		case Internal(r.Store) || r.Store == c.Authentication.IdentStore:
			c.doc.Problem(at, "belfry manages the objects of %s; they can't be referred to", r.Store)
		case what.array():
			c.doc.Problem(at, "is %s, and holds no uuids", what)
		case r.Required && (what.path != "" || st.Computed[property] != ""):
			c.doc.Problem(at+".required", "clients don't set this property: it is copied or computed; remove required")
		case r.OnDelete == OnDeleteClear && (what.path != "" || st.Computed[property] != ""):
			c.doc.Problem(at+".onDelete", "clear can't change this property: it is copied or computed")
		case r.OnDelete == OnDeleteRestrict && (what.path != "" || st.Computed[property] != ""):
			c.doc.Problem(at+".onDelete", "restrict can't refuse what this property names: it is copied or computed")
		case r.OnDelete == OnDeleteClear && property == st.Owner:
			c.doc.Problem(at+".onDelete", "clear would leave objects without an owner; choose another value")
		}
		c.checkOnDelete(st, property, at)
	}
}

// checkOnDelete refuses a mapping that says something else about the objects of a deleted one than the reference with
// the same property.
func (c *Config) checkOnDelete(st *Store, property, at string) {
	r := st.References[property]
	m, mapped := st.Map[r.Store]
	if !mapped || m.Key != property {
		return
	}
	cascade := decode.Join(decode.Join("stores", st.Name)+".map", r.Store) + ".cascade"
	said := c.doc.IsSet(at + ".onDelete")
	switch {
	case m.Cascade && said && r.OnDelete != OnDeleteCascade:
		c.doc.Problem(at+".onDelete", "is %s, but %s says that the objects are deleted; remove one of them", r.OnDelete,
			cascade)
	case !m.Cascade && c.doc.IsSet(cascade) && r.OnDelete == OnDeleteCascade:
		c.doc.Problem(at+".onDelete", "is cascade, but %s says that the objects stay; remove one of them", cascade)
	}
}

// checkCopies refuses copies whose source does not exist, that something else sets, or that would show more than their
// readers may see.
func (c *Config) checkCopies(st *Store, path string, maintained maintained) {
	for _, property := range names(st.Copies) {
		at := decode.Join(path+".copies", property)
		c.checkCopyTarget(st, property, at, maintained)
		reference, field := st.Copies[property].Source()
		r, known := st.References[reference]
		source := c.Stores[r.Store]
		switch {
		case field == "": // reported
		case !known:
			c.doc.Problem(at, "no reference %s in this store; %s", c.doc.Display(at, reference),
				knownReferences(st))
		case source == nil: // reported
		default:
			c.checkCopySource(st, property, at, source, field, maintained)
		}
	}
}

func knownReferences(st *Store) string {
	if len(st.References) == 0 {
		return "add references to the store: {PROPERTY: STORE}"
	}
	return decode.Known(names(st.References))
}

// checkCopyTarget refuses a copy in a property that something else sets.
func (c *Config) checkCopyTarget(st *Store, property, at string, maintained maintained) {
	switch what := maintained[st.Name][property]; {
	case Internal(st.Name) || st.Name == c.Authentication.IdentStore:
		c.doc.Problem(at, "is not for a store whose objects belfry manages")
	case what.path != at: // reported
	case slices.Contains(st.Reserved, property) || property == "password" && st.Name == c.Authentication.UserStore:
		c.doc.Problem(at, "belfry alone sets it; choose another property")
	case property == st.Owner:
		c.doc.Problem(at, "is the owner, which the server sets; choose another property")
	case st.Computed[property] != "":
		c.doc.Problem(at, "is computed as well; remove one of them")
	case slices.Contains(st.ReadOnly, property):
		c.doc.Problem(at, "is in readOnly as well; clients never set a copy, so remove it there")
	case st.Fields[property].Write != "":
		c.doc.Problem(at, "has a write rule, and clients never set a copy; remove the rule")
	}
}

// checkCopySource refuses a copy of what its readers may not see in its source.
func (c *Config) checkCopySource(st *Store, property, at string, source *Store, field string, maintained maintained) {
	displayed := c.doc.Display(at, field)
	hidden := st.NeverRead(property)
	switch {
	case source.NeverRead(field):
		c.doc.Problem(at, "%s is private in %s and can't be copied", displayed, source.Name)
	case slices.Contains(source.Reserved, field):
		c.doc.Problem(at, "belfry alone sets %s of %s, and it can't be copied", displayed, source.Name)
	case maintained[source.Name][field].array():
		c.doc.Problem(at, "%s of %s is %s, too large for copies; copy an aggregate, or a property computed from it",
			displayed, source.Name, maintained[source.Name][field])
	case hidden || st.Fields[property].Read != "":
	case !source.ReadByAll(field):
		c.doc.Problem(at, "%s has a read rule in %s, which the copy does not follow; say who may read the copy: "+
			`{from: %s, read: "true"}, or another rule`, displayed, source.Name, st.Copies[property].From)
	case !source.readByEveryone():
		c.doc.Problem(at, "not everyone may get the objects of %s, and the copy would show %s; say who may read the "+
			`copy: {from: %s, read: "true"}, or another rule`, source.Name, displayed, st.Copies[property].From)
	}
}

// readByEveryone reports whether everyone may get the objects of a store.
func (s *Store) readByEveryone() bool {
	if s.Policy == (Policy{}) {
		return true
	}
	return strings.TrimSpace(s.Policy.Get) == "true" || s.Policy.Get == "" && !s.Policy.Owner
}
