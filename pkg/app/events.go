package app

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/pkg/api/sse"
	"belfry/pkg/app/part"
	"belfry/pkg/store"
)

// streams sends events to browsers.
type streams struct {
	served  *current
	log     *slog.Logger
	metrics *prometheus.Registry
}

func (s *streams) part() servedPart {
	return servedPart{
		Name:   "events for browsers",
		Start:  func(_ context.Context, first *generation) error { s.open(first); return nil },
		Reload: s.reload,
		Stop:   func(context.Context) error { s.served.now().live.Close(); return nil },
	}
}

// open makes the hub that sends events to browsers.
func (s *streams) open(g *generation) {
	e := g.config.Events
	o := sse.Options{
		Bus: g.bus, Identity: []string{config.SessionStore, g.config.Authentication.UserStore}, Accounts: g.config.Authentication.UserStore,
		Clients: e.Clients, Address: e.Address, Heartbeat: e.Heartbeat, Buffer: e.Buffer,
		Sealer: g.sealer, Registry: s.metrics, Logger: s.log,
	}
	if o.Address == 0 {
		o.Address = -1
	}
	o.Stores, o.GetOnly = eventStores(g.config, g.set)
	g.live = sse.New(o)
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

// reload makes the hub of another configuration. Streams end at once: they last for long, and what their clients may receive is for
// its rules to decide.
func (s *streams) reload(_ context.Context, before, next *generation) (part.Change, error) {
	s.open(next)
	return part.Change{
		Apply: func() { before.live.Retire(next.live) }, Cancel: func() { next.live.Close() },
		Retire: func(context.Context) { before.live.Close() },
	}, nil
}
