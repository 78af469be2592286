package apimodel

import (
	"belfry/config"
	"belfry/internal/ordered"
)

// Key is a property with the uuid of an object of another store, or with several.
type Key struct {
	Name, Target string
	Required     bool // it names objects that exist
}

// keyOf returns a key of a store, which a reference may require.
func keyOf(s *config.Store, property, target string) Key {
	r := s.References[property]
	return Key{Name: property, Target: target, Required: r.Required && r.Store == target}
}

// addKeys adds the properties that mappings and references use and the schema lacks, and says of the others what they
// name.
func (s *Store) addKeys(properties *ordered.Object, without map[string]bool, closed bool) {
	for _, key := range s.Keys {
		known, _ := properties.Get(key.Name).(*ordered.Object)
		switch {
		case known != nil && !known.Has("description") && !known.Has("$ref") && !known.Has("readOnly"):
			known = known.Clone()
			known.Set("description", key.description())
			properties.Set(key.Name, known)
		case !closed && !without[key.Name] && !properties.Has(key.Name):
			properties.Set(key.Name, ordered.Of("description", key.description()))
		}
	}
}

// description says what a key names.
func (k Key) description() string {
	text := "The uuid of an object of " + k.Target + ", or an array of them."
	if k.Required {
		text += " Required: the object exists, and the client may get it."
	}
	return text
}
