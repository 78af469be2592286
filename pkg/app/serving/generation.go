// Package serving has the state that the parts of a process share: its generations, one of which is current, its roles
// and metrics, the reason for which its start waits, and its end.
//
//	Generation  all that one configuration serves; parts complete it, and a reload makes the next one
//	Process     what parts make at the start, and all generations have
//	Current     the generation that is served now, and those that are still in use
//	Lifetime    the contexts of the stop, and the error after which a process can't continue
package serving

import (
	"maps"
	"net/http"
	"slices"
	"sync"

	"belfry/config"
	"belfry/internal/baseurl"
	"belfry/internal/seal"
	"belfry/listeners/aggregate"
	"belfry/listeners/cascade"
	"belfry/listeners/copies"
	"belfry/listeners/mapping"
	"belfry/listeners/mapping/route"
	"belfry/listeners/sweep"
	"belfry/pkg/account"
	"belfry/pkg/account/sessions"
	"belfry/pkg/api"
	"belfry/pkg/api/applied"
	"belfry/pkg/api/sse"
	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/probe"
	"belfry/pkg/app/tracing"
	"belfry/pkg/binary"
	storage "belfry/pkg/binary/driver"
	"belfry/pkg/bus"
	"belfry/pkg/httpkit"
	"belfry/pkg/natsapi"
	"belfry/pkg/outbox"
	"belfry/pkg/search"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
)

// Part is a part of a process that serves.
type Part = part.Part[*Generation]

// Process has the values that parts make at the start and no reload replaces.
type Process struct {
	Address string // of HTTP
	Bus     *bus.Bus
	Relay   *outbox.Relay
	Sealer  *seal.Sealer    // nil until the store of its keys is open
	Waiter  *applied.Waiter // nil without the role front
}

// Generation is the service of a process with one configuration: the stores with their rules, the services over them,
// the workers and the routes. The parts of a process create the first one at the start. On a reload they create another
// one, which replaces it. A request, an event, or an operation over the bus completes with the generation with which it
// began.
//
// Each part sets its own fields, and reads those of parts that start before it. A field is nil if the roles of the
// process do not need it.
type Generation struct {
	*Process

	Config         *config.Config
	Plan           *plan.Plan
	Tracer         *tracing.Tracer // nil: none
	MetricsAddress string          // of their own port; "": that of HTTP
	Backends       map[string]driver.Backend
	Set            *store.Set
	Auth           *account.Service
	FormerCookies  []sessions.FormerCookie // former names of the sessions' cookie
	Storages       map[string]storage.Storage
	Binaries       map[string]*binary.Service
	Sharing        *route.Group // nil: the mapping worker shares no targets
	Mapper         *mapping.Worker
	Copier         *copies.Worker
	Aggregator     *aggregate.Worker
	Cascader       *cascade.Worker
	Sweeper        *sweep.Worker // nil without binaries

	Operations *natsapi.Server // over the bus
	Live       *sse.Hub
	Search     *search.Service // nil: this process answers no searches
	Limits     *httpkit.Limits
	API        *api.Server
	Handler    http.Handler // API, with the filters of all routes
	Depends    []*probe.Dependency
	Building   []string // indexes that are being built, as Books.user

	inUse, writing sync.WaitGroup
}

// NewGeneration returns a generation that the parts of a starting process complete.
func NewGeneration(c *config.Config, p *plan.Plan) *Generation {
	return &Generation{Process: &Process{}, Config: c, Plan: p}
}

// Next returns a generation that the parts of a process complete for another configuration.
func (g *Generation) Next(c *config.Config, p *plan.Plan) *Generation {
	return &Generation{Process: g.Process, Config: c, Plan: p}
}

// Base is the URL at which clients reach belfry.
func (g *Generation) Base() baseurl.URL { return baseurl.Parse(g.Config.BaseURLAt(g.Address)) }

// Hosts returns the hosts that requests may name.
func (g *Generation) Hosts() *httpkit.Hosts {
	return httpkit.NewHosts(g.Config.BaseURLAt(g.Address), g.Config.Hosts...)
}

// SearchStatus returns the states of the indexes of this process.
func (g *Generation) SearchStatus() []search.Status {
	if s := g.Search; s != nil {
		return s.Status()
	}
	return nil
}

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
