package app

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/internal/baseurl"
	"belfry/pkg/api"
	"belfry/pkg/api/kit"
	"belfry/pkg/apidoc/openapi"
	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
	"belfry/pkg/store/idempotent"
)

// front serves HTTP from the beginning of the start: until belfry is ready it replies that it is starting,
// and what it waits for.
type front struct {
	listener net.Listener
	server   *http.Server
	starting atomic.Pointer[api.Server] // serves until belfry is ready; then nil
	waiting  atomic.Pointer[errs.Error] // why belfry is not ready
	done     chan struct{}
}

// ServeHTTP serves a request with one configuration from its beginning to its end.
func (a *App) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if starting := a.front.starting.Load(); starting != nil {
		starting.ServeHTTP(w, r)
		return
	}
	now, done := a.use()
	defer done()
	now.handler.ServeHTTP(w, r)
}

func errStarting() *errs.Error { return errs.New(errs.Unavailable, "belfry is starting") }

// listen listens for HTTP and replies that belfry is starting.
func (a *App) listen(ctx context.Context) error {
	f := &a.front
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a.now().config.Listen)
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "can't listen for HTTP on %s: free the port, or choose another with --listen", a.now().config.Listen)
	}
	f.listener, f.done = listener, make(chan struct{})
	f.waiting.Store(errStarting())
	starting := api.New(api.Options{
		Closed: func() error { return f.waiting.Load() }, Registry: prometheus.NewRegistry(), Logger: a.log, Hosts: a.now().hosts(), Base: a.now().base(),
	})
	f.starting.Store(starting)
	f.server = starting.HTTPServer()
	f.server.Handler = a
	go func() {
		defer close(f.done)
		if err := f.server.Serve(securing{listener, &a.secure}); !errors.Is(err, http.ErrServerClosed) {
			a.fail(errs.Wrap(err, errs.Unavailable, "the HTTP server has failed"))
		}
	}()
	a.onStop("HTTP while starting", func(context.Context) error {
		_ = f.server.Close() // has been shut down already if belfry served
		<-f.done
		return nil
	})
	return nil
}

// base is where clients reach belfry.
func (a *serving) base() baseurl.URL { return baseurl.Parse(a.config.BaseURLAt(a.HTTPAddress())) }

// hosts returns the hosts that requests may name.
func (a *serving) hosts() *kit.Hosts {
	return kit.NewHosts(a.config.BaseURLAt(a.HTTPAddress()), a.config.Hosts...)
}

// newLimits makes the limits of clients over HTTP; before are those that they replace, nil for none.
func (a *serving) newLimits(before *kit.Limits) {
	l := a.config.Limits
	a.limits = kit.NewLimits(kit.LimitOptions{Address: kit.Rates(l.Address), User: kit.Rates(l.User), Loopback: l.Loopback, Previous: before}, a.registry)
}

// newAPI makes the routes. A process without the role front serves its health only, and its metrics
// where these have no port of their own.
func (a *serving) newAPI() error {
	if a.limits == nil {
		a.newLimits(nil)
	}
	o := api.Options{
		Stopping: a.draining, Cut: a.cut, Ready: a.ready, Alive: a.alive, Registry: a.registry, Metrics: a.publicMetrics(), Logger: a.log, Hosts: a.hosts(), Base: a.base(), Pages: a.pages,
	}
	if a.has(plan.RoleFront) {
		contract, err := a.contract()
		if err != nil {
			return err
		}
		openAPI := plan.DocumentOf(contract, openapi.Document)
		a.kept.SetMax(a.config.Limits.Idempotency)
		o.Keyed = idempotent.New(idempotent.Options{Requests: a.set.Store(config.RequestStore), TombstoneRetention: a.config.Tombstones, Kept: a.kept})
		o.Login, o.Objects, o.Files, o.Events = a.apiLogin(), a.apiObjects(), a.apiFiles(), a.live
		o.Waiter, o.Proxies, o.Documents, o.Limits = a.waiter, a.config.Proxies, a.documents(contract, openAPI), a.limits
		o.Development, o.ProxyHeader = a.config.Development, a.config.ProxyHeader
		o.Console = a.console(openAPI)
		o.Site, o.Static = a.site(), a.static()
	}
	a.api = api.New(o)
	a.handler = a.traced(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.announceTLS(w, r)
		a.api.ServeHTTP(w, r)
	}))
	return nil
}

// startRoutes makes the routes.
func (a *serving) startRoutes(context.Context) error {
	a.depends = a.newDependencies()
	if err := a.newAPI(); err != nil {
		return err
	}
	a.watch()
	return nil
}

// reloadRoutes makes the routes of another configuration. Requests in flight end with those with which they began.
func reloadRoutes(_ context.Context, before, next *serving) (part.Change, error) {
	next.depends = next.newDependencies()
	next.newLimits(before.limits)
	if err := next.newAPI(); err != nil {
		return part.Change{}, err
	}
	return part.Change{
		Apply: func() { before.api.Retire() }, Cancel: func() { next.api.Close() },
		Retire: func(context.Context) { before.api.Close() }, // else the contexts of the stop would keep the routes
	}, nil
}

// serveHTTP serves requests.
func (a *serving) serveHTTP(context.Context) error {
	f := &a.front
	f.server.RegisterOnShutdown(a.drain)
	f.starting.Store(nil)
	a.onStop("HTTP", func(ctx context.Context) error {
		patience := time.AfterFunc(bodyPatience(ctx), a.cutOff)
		defer patience.Stop()
		err := f.server.Shutdown(ctx)
		if err != nil {
			err = errors.Join(err, f.server.Close())
		}
		<-f.done
		return err
	})
	return nil
}

// maxBodyPatience is how long a stop waits for bodies of requests that are still arriving; another time in tests.
var maxBodyPatience = 5 * time.Second

// bodyPatience returns how long a stop waits for bodies: at most a quarter of its time, so that the rest is for what has arrived.
func bodyPatience(ctx context.Context) time.Duration {
	deadline, limited := ctx.Deadline()
	if !limited {
		return maxBodyPatience
	}
	return min(maxBodyPatience, time.Until(deadline)/4)
}
