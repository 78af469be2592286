package app

import (
	"net/http"
	"sync"

	"belfry/config"
	"belfry/listeners/cascade"
	"belfry/listeners/mapping"
	"belfry/listeners/mapping/route"
	"belfry/listeners/sweep"
	"belfry/pkg/account"
	"belfry/pkg/api"
	"belfry/pkg/api/kit"
	"belfry/pkg/api/sse"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/tracing"
	"belfry/pkg/binary"
	storage "belfry/pkg/binary/driver"
	"belfry/pkg/mapping/fill"
	"belfry/pkg/natsapi"
	"belfry/pkg/search"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
)

// serving is what a process serves with one configuration: the stores with their rules, the services over them,
// the workers and the routes. The parts of a process make the first at the start; a reload has them make another beside it, which then
// takes its place. Whatever has begun with one ends with it: a request, an
// event, an operation over the bus. A part is nil where the roles of the process do not need it.
type serving struct {
	*App // what no reload changes

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
	claims     *fill.Filler    // of unique values
	filler     *fill.Filler
	live       *sse.Hub
	search     *search.Service // nil: this process answers no searches
	limits     *kit.Limits
	api        *api.Server
	handler    http.Handler // api, with what all of its routes have
	depends    []*dependency
	unbuilt    []string // indexes that only a restart makes, as Books.user

	inUse sync.WaitGroup
}
