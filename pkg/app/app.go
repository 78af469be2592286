// Package app is a running belfry. wiring.go lists its parts in the order in which they start; they change together
// when the configuration is reloaded, and stop in the reverse order.
package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"belfry/config"
	"belfry/pkg/api/console"
	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/serving"
	"belfry/pkg/bus"
	"belfry/pkg/store"
)

// App is a running belfry.
type App struct {
	log      *slog.Logger
	roles    serving.Roles
	served   *serving.Current
	lifetime *serving.Lifetime
	parts    *part.List[*serving.Generation]
	wiring   *wiring

	changing   sync.Mutex                     // held by a reload, and by the stop
	reload     atomic.Pointer[Reloading]      // nil: there is no reload yet
	lastReload atomic.Pointer[console.Reload] // nil: none was requested
}

// Start starts the parts of belfry that a configuration enables, or those of the given roles, and
// returns once it serves. If one fails, it stops those that were started.
func Start(ctx context.Context, c *config.Config, log *slog.Logger, roles ...string) (*App, error) {
	p, err := plan.CompileFor(c, roles)
	if err != nil {
		return nil, err
	}
	var found doubts
	var checking sync.WaitGroup
	checking.Go(func() { found = doubtsOf(c) })
	defer checking.Wait()
	a := newApp(c, p, log, roles)
	if err := a.parts.StartAll(ctx, a.wiring.parts, a.now()); err != nil {
		return nil, errors.Join(err, a.Stop(context.WithoutCancel(ctx)))
	}
	checking.Wait()
	warn(a.now(), found, a.roles, a.log)
	reportChanges(a.now(), a.log)
	return a, nil
}

func newApp(c *config.Config, p *plan.Plan, log *slog.Logger, roles serving.Roles) *App {
	a := &App{
		log: log, roles: roles, served: serving.NewCurrent(serving.NewGeneration(c, p)),
		lifetime: serving.NewLifetime(), parts: part.NewList[*serving.Generation](log),
	}
	a.wiring = newWiring(a)
	return a
}

func (a *App) now() *serving.Generation { return a.served.Now() }

// Withdraw lets /readyz reply 503, so that load balancers send no more requests. For a time, it still serves requests.
// Like Failed, it returns an error that ends this time early. Stop has to follow.
func (a *App) Withdraw(d time.Duration) error {
	a.lifetime.Stop()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case err := <-a.lifetime.Failed:
		return err
	}
}

// Stop stops all parts in the reverse order of starting: belfry accepts no new requests, answers those in flight,
// publishes their events, and the workers finish the events that they hold.
//
// If ctx ends first, the rest is aborted and logged, which is not an error. Each acknowledged write is in its record
// with its event, a request without a reply was not acknowledged, and an event that was not handled is redelivered.
func (a *App) Stop(ctx context.Context) error {
	a.lifetime.Stop()
	a.changing.Lock() // a reload in progress ends first, and none begins
	defer a.changing.Unlock()
	defer a.lifetime.Drain()
	defer a.lifetime.CutOff()
	return a.parts.Stop(ctx)
}

// Failed receives an error after which belfry can't continue and must be stopped. Only the first is
// sent, since others follow from it.
func (a *App) Failed() <-chan error { return a.lifetime.Failed }

// Bus is the connection to the bus.
func (a *App) Bus() *bus.Bus { return a.now().Bus }

// Set returns the stores.
func (a *App) Set() *store.Set { return a.now().Set }

// HTTPAddress is the address on which HTTP is served.
func (a *App) HTTPAddress() string { return a.now().Address }

// Routes returns all routes of HTTP, as "GET /books/{uuid}".
func (a *App) Routes() []string { return a.now().API.Routes() }

// ServeHTTP serves a request with one configuration from its beginning to its end.
func (a *App) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.wiring.front.ServeHTTP(w, r) }
