package app

import (
	"context"
	"maps"
	"slices"

	"belfry/config"
	"belfry/pkg/api/sse"
	"belfry/pkg/app/part"
	"belfry/pkg/store"
)

// newEvents makes the hub that sends events to browsers.
func (a *serving) newEvents() {
	e := a.config.Events
	o := sse.Options{
		Bus: a.bus, Identity: []string{config.SessionStore, a.config.Authentication.UserStore}, Accounts: a.config.Authentication.UserStore,
		Clients: e.Clients, Address: e.Address, Heartbeat: e.Heartbeat, Buffer: e.Buffer,
		Sealer: a.sealer, Registry: a.registry, Logger: a.log,
	}
	if o.Address == 0 {
		o.Address = -1
	}
	o.Stores, o.GetOnly = eventStores(a.config, a.set)
	a.live = sse.New(o)
}

// startEvents starts the hub that sends events to browsers.
func (a *serving) startEvents(context.Context) error {
	a.newEvents()
	a.onStop("events for browsers", func(context.Context) error { a.now().live.Close(); return nil })
	return nil
}

// eventStores returns the stores whose events browsers may receive: those that are configured so, or can be
// listed, since a stream shows which objects there are, as a list does. Their objects can be read, since an
// event holds what a get returns. An interceptor of get can't be called for each event and client, so stores
// with one have no events for browsers. getOnly are the stores that are configured so.
func eventStores(c *config.Config, set *store.Set) (all []*store.Store, getOnly []string) {
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

// reloadEvents makes the hub of another configuration. Streams end at once: they last for long, and what their clients may receive is for
// its rules to decide.
func reloadEvents(_ context.Context, before, next *serving) (part.Change, error) {
	next.newEvents()
	return part.Change{
		Apply: func() { before.live.Retire(next.live) }, Cancel: func() { next.live.Close() },
		Retire: func(context.Context) { before.live.Close() },
	}, nil
}
