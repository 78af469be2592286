package apimodel

import (
	"maps"

	"belfry/config"
)

// serverProperties returns the properties that no client sets, and those that the schema of the store does not validate
// in replies, which include the owner, because programs set it. The uuid is among both if the schema does not declare
// it, or if parts of the schema may refuse it.
func (s *Store) serverProperties(c *config.Store) (kept, shown map[string]bool) {
	kept = map[string]bool{"created": true, "updated": true}
	for _, a := range s.Arrays {
		kept[a.Name] = true
	}
	for _, property := range c.Reserved {
		kept[property] = true
	}
	for property := range c.Computed {
		kept[property] = true
	}
	for _, property := range s.Files {
		kept[property] = true
	}
	if s.compiled != nil && (!s.compiled.Declares("uuid") || s.compiled.MayRefuse("uuid")) {
		kept["uuid"] = true
	}
	shown = maps.Clone(kept)
	if s.Owner != "" {
		shown[s.Owner] = true
	}
	return kept, shown
}
