package app

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

// servedPart is a part of a process that serves.
type servedPart = part.Part[*generation]

// process is what parts make at the start and no reload replaces.
type process struct {
	address string // of HTTP
	bus     *bus.Bus
	relay   *outbox.Relay
	sealer  *seal.Sealer    // nil until the store of its keys is open
	waiter  *applied.Waiter // nil without the role front
}

// generation is what a process serves with one configuration: the stores with their rules, the services over them,
// the workers and the routes. The parts of a process make the first at the start; a reload has them make another beside it, which then
// takes its place. Whatever has begun with one ends with it: a request, an
// event, an operation over the bus. A field is nil where the roles of the process do not need it.
type generation struct {
	*process

	config         *config.Config
	plan           *plan.Plan
	tracer         *tracing.Tracer // nil: none
	metricsAddress string          // of their own port; "": that of HTTP
	backends       map[string]driver.Backend
	set            *store.Set
	auth           *account.Service
	formerCookies  []account.FormerCookie // names that the cookie of sessions had
	storages       map[string]storage.Storage
	binaries       map[string]*binary.Service
	sharing        *route.Group // nil: the mapping worker shares no targets
	mapper         *mapping.Worker
	cascader       *cascade.Worker
	sweeper        *sweep.Worker // nil without binaries

	operations *natsapi.Server // over the bus
	live       *sse.Hub
	search     *search.Service // nil: this process answers no searches
	limits     *kit.Limits
	api        *api.Server
	handler    http.Handler // api, with what all of its routes have
	depends    []*dependency
	unbuilt    []string // indexes that only a restart makes, as Books.user

	inUse sync.WaitGroup
}

// newGeneration returns what the parts of a process that starts complete.
func newGeneration(c *config.Config, p *plan.Plan) *generation {
	return &generation{process: &process{}, config: c, plan: p}
}

// next returns what the parts of a process complete for another configuration.
func (g *generation) next(c *config.Config, p *plan.Plan) *generation {
	return &generation{process: g.process, config: c, plan: p}
}

// base is where clients reach belfry.
func (g *generation) base() baseurl.URL { return baseurl.Parse(g.config.BaseURLAt(g.address)) }

// hosts returns the hosts that requests may name.
func (g *generation) hosts() *kit.Hosts {
	return kit.NewHosts(g.config.BaseURLAt(g.address), g.config.Hosts...)
}

// searchStatus returns the states of the indexes of this process.
func (g *generation) searchStatus() []search.Status {
	if s := g.search; s != nil {
		return s.Status()
	}
	return nil
}
