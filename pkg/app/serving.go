package app

import (
	"context"
	"sync"

	"belfry/config"
	"belfry/listeners/cascade"
	"belfry/listeners/mapping"
	"belfry/listeners/sweep"
	"belfry/pkg/account"
	"belfry/pkg/api"
	"belfry/pkg/api/kit"
	"belfry/pkg/api/sse"
	"belfry/pkg/app/open"
	"belfry/pkg/app/plan"
	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/natsapi"
	"belfry/pkg/store"
)

// serving is what a process serves with one configuration: the stores with their rules, the services over them,
// the workers and the routes. The steps of a start make the first; a reload makes another beside it, over the same
// backends, storages and bus, which then takes its place. Whatever has begun with one ends with it: a request, an
// event, an operation over the bus. A part is nil where the roles of the process do not need it.
type serving struct {
	*App // what no reload changes

	config        *config.Config
	plan          *plan.Plan
	set           *store.Set
	auth          *account.Service
	formerCookies []account.FormerCookie // names that the cookie of sessions had
	binaries      map[string]*binary.Service
	mapper        *mapping.Worker
	cascader      *cascade.Worker
	sweeper       *sweep.Worker

	operations *natsapi.Server // over the bus
	live       *sse.Hub
	limits     *kit.Limits
	api        *api.Server

	inUse sync.WaitGroup
}

// now returns what is served. Whoever needs what close ends uses use; everything else stays usable after a reload.
func (a *App) now() *serving {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.current
}

// use returns what is served, which stays complete until done is called.
func (a *App) use() (g *serving, done func()) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	a.current.inUse.Add(1)
	return a.current, a.current.inUse.Done
}

// replace has another configuration served, and returns the one before. Nothing begins with that any more.
func (a *App) replace(next *serving) (before *serving) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, a.current = a.current, next
	return before
}

// retire ends what has been replaced, once nothing uses it. Streams end at once, and uploads are written with the new
// rules: both last for long, and what their clients may receive or send is for these to decide.
func (a *App) retire(before, next *serving) {
	if before.live != nil {
		before.live.Retire(next.live)
	}
	for name, b := range before.binaries {
		b.Retire(next.binaries[name])
	}
	before.api.Retire()
	a.retiring.Go(func() {
		before.inUse.Wait()
		before.close()
	})
}

// startRetiring has a stop wait for what was replaced, before what that needs is closed.
func (a *App) startRetiring(context.Context) error {
	a.onStop("what was served before a reload", func(ctx context.Context) error {
		done := make(chan struct{})
		go func() {
			a.retiring.Wait()
			close(done)
		}()
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return errs.Wrap(ctx.Err(), errs.Canceled, "a configuration that was replaced is still in use")
		}
	})
	return nil
}

// close ends the parts that run by themselves, and what keeps them reachable. Nothing uses them any more.
func (g *serving) close() {
	g.api.Close() // else the contexts of the app's stop would keep the routes
	if g.mapper != nil {
		g.mapper.Close()
	}
	if g.live != nil {
		g.live.Close()
	}
	if g.auth != nil {
		g.auth.Close()
	}
}

// rebuild makes what a configuration serves out of what is served now. Nothing of it is in use yet. missing names
// the indexes that only a restart makes.
func (g *serving) rebuild(before *serving) (missing []string, err error) {
	missing = g.reconfigure(before)
	g.binaries = open.Services(g.plan, g.storages, g.set, g.registry, before.binaries)
	if before.auth != nil {
		g.keepFormerCookies(before)
		g.newAuth(before.auth)
	}
	if before.mapper != nil {
		g.newWorkers()
	}
	if before.sweeper != nil {
		if g.sweeper, err = sweep.NewWorker(open.InOrder(g.binaries), g.log); err != nil {
			return nil, err
		}
	}
	if before.live != nil {
		g.newEvents()
	}
	g.newLimits(before.limits)
	return missing, g.newAPI()
}

// reconfigure makes the stores.
func (g *serving) reconfigure(before *serving) (missing []string) {
	var stores []*store.Store
	for _, o := range g.plan.Stores {
		g.complete(&o)
		s, without := before.set.Store(o.Name).Reconfigured(o)
		stores = append(stores, s)
		for _, i := range without {
			missing = append(missing, o.Name+"."+i.Name)
		}
	}
	g.set = store.NewSet(stores, g.plan.Mappings)
	return missing
}
