package serving

import (
	"net/http"
	"sync"

	"belfry/config"
	"belfry/internal/baseurl"
	"belfry/internal/seal"
	"belfry/listeners/cascade"
	"belfry/listeners/mapping"
	"belfry/listeners/mapping/route"
	"belfry/listeners/sweep"
	"belfry/pkg/account"
	"belfry/pkg/api"
	"belfry/pkg/api/applied"
	"belfry/pkg/api/kit"
	"belfry/pkg/api/sse"
	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/probe"
	"belfry/pkg/app/tracing"
	"belfry/pkg/binary"
	storage "belfry/pkg/binary/driver"
	"belfry/pkg/bus"
	"belfry/pkg/natsapi"
	"belfry/pkg/outbox"
	"belfry/pkg/search"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
)

// Part is a part of a process that serves.
type Part = part.Part[*Generation]

// process is what parts make at the start and no reload replaces.
type process struct {
	Address string // of HTTP
	Bus     *bus.Bus
	Relay   *outbox.Relay
	Sealer  *seal.Sealer    // nil until the store of its keys is open
	Waiter  *applied.Waiter // nil without the role front
}

// Generation is what a process serves with one configuration: the stores with their rules, the services over them,
// the workers and the routes. The parts of a process make the first at the start; a reload has them make another beside it, which then
// takes its place. Whatever has begun with one ends with it: a request, an
// event, an operation over the bus. A field is nil where the roles of the process do not need it.
type Generation struct {
	*process

	Config         *config.Config
	Plan           *plan.Plan
	Tracer         *tracing.Tracer // nil: none
	MetricsAddress string          // of their own port; "": that of HTTP
	Backends       map[string]driver.Backend
	Set            *store.Set
	Auth           *account.Service
	FormerCookies  []account.FormerCookie // names that the cookie of sessions had
	Storages       map[string]storage.Storage
	Binaries       map[string]*binary.Service
	Sharing        *route.Group // nil: the mapping worker shares no targets
	Mapper         *mapping.Worker
	Cascader       *cascade.Worker
	Sweeper        *sweep.Worker // nil without binaries

	Operations *natsapi.Server // over the bus
	Live       *sse.Hub
	Search     *search.Service // nil: this process answers no searches
	Limits     *kit.Limits
	API        *api.Server
	Handler    http.Handler // api, with what all of its routes have
	Depends    []*probe.Dependency
	Unbuilt    []string // indexes that only a restart makes, as Books.user

	inUse sync.WaitGroup
}

// NewGeneration returns what the parts of a process that starts complete.
func NewGeneration(c *config.Config, p *plan.Plan) *Generation {
	return &Generation{process: &process{}, Config: c, Plan: p}
}

// next returns what the parts of a process complete for another configuration.
func (g *Generation) Next(c *config.Config, p *plan.Plan) *Generation {
	return &Generation{process: g.process, Config: c, Plan: p}
}

// base is where clients reach belfry.
func (g *Generation) Base() baseurl.URL { return baseurl.Parse(g.Config.BaseURLAt(g.Address)) }

// hosts returns the hosts that requests may name.
func (g *Generation) Hosts() *kit.Hosts {
	return kit.NewHosts(g.Config.BaseURLAt(g.Address), g.Config.Hosts...)
}

// searchStatus returns the states of the indexes of this process.
func (g *Generation) SearchStatus() []search.Status {
	if s := g.Search; s != nil {
		return s.Status()
	}
	return nil
}
