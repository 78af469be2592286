package serving

import (
	"maps"
	"slices"

	"belfry/config"
	"belfry/pkg/store"
)

// EventStores returns the stores whose events browsers may receive. These stores have expose.events, or can be listed,
// since a stream shows which objects exist, as a list does. Their objects can be read, since an event has the result of
// a get. Stores with an interceptor of get have no events for browsers, because it can't be called for each event and
// client. getOnly are the stores with expose.events.
func EventStores(c *config.Config, set *store.Set) (all []*store.Store, getOnly []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Stores)) {
		s := c.Stores[name]
		if e := s.Expose; e != nil && e.Events && !e.Restrict.Get && len(s.Intercept["get"]) == 0 {
			all = append(all, set.Store(name))
			if !e.EventsAsList {
				getOnly = append(getOnly, name)
			}
		}
	}
	return all, getOnly
}
