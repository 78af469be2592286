package serving

import (
	"maps"
	"slices"

	"belfry/config"
	"belfry/pkg/store"
)

// EventStores returns the stores whose events browsers may receive: those that are configured so, or can be
// listed, since a stream shows which objects there are, as a list does. Their objects can be read, since an
// event holds the result of a get. An interceptor of get can't be called for each event and client, so stores
// with one have no events for browsers. getOnly are the stores that are configured so.
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
