package apimodel

import (
	"slices"

	"belfry/config"
	"belfry/internal/ordered"
)

// expandable returns the keys that name objects of one store, which clients may get.
func (s *Store) expandable(c *config.Config) []Key {
	return slices.DeleteFunc(slices.Clone(s.Keys), func(k Key) bool {
		e := c.Stores[k.Target].Expose
		return e == nil || e.Restrict.Get || slices.ContainsFunc(s.Keys, func(o Key) bool { return o.Name == k.Name && o.Target != k.Target })
	})
}

// expanded is the schema of the expanded objects in an object.
func (s *Store) expanded(k *Contract) *ordered.Object {
	properties := &ordered.Object{}
	for _, key := range s.Expand {
		target := Ref(k.Store(key.Target).ObjectName())
		properties.Set(key.Name, ordered.Of("anyOf", []any{target, ordered.Of("type", "array", "items", target)}))
	}
	return readOnly(nil, ordered.Of("type", "object", "description", "With `expand`: the objects that the fields name. Objects that do not exist, or that the client may not read, are absent.", "properties", properties))
}
