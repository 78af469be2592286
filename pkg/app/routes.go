package app

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"belfry/config"
	"belfry/pkg/api"
	"belfry/pkg/api/console"
	"belfry/pkg/api/files"
	"belfry/pkg/api/kit"
	"belfry/pkg/api/pagememory"
	"belfry/pkg/api/system"
	"belfry/pkg/apidoc/openapi"
	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/store/idempotent"
)

// routes makes the routes of HTTP. A process without the role front serves its health only, and its metrics
// where these have no port of their own.
type routes struct {
	roles    roles
	log      *slog.Logger
	metrics  *metrics
	lifetime *lifetime
	health   *health
	pages    *pagememory.Budget // of lists, over HTTP and over the bus
	console  func(g *generation, openAPI func() ([]byte, error)) *console.Options

	uploads *files.Memory    // of uploads in flight
	kept    *idempotent.Kept // for clients of requests with a key
}

// part is the part of a process.
func (r *routes) part() servedPart {
	return servedPart{
		Name: "routes",
		Start: func(_ context.Context, first *generation) error {
			r.uploads, r.kept = files.NewMemory(), idempotent.NewKept(first.config.Limits.Idempotency, nil)
			return r.open(first, nil)
		},
		Reload: r.reload,
	}
}

// reload makes the routes of another configuration. Requests in flight end with those with which they began.
func (r *routes) reload(_ context.Context, before, next *generation) (part.Change, error) {
	if err := r.open(next, before.limits); err != nil {
		return part.Change{}, err
	}
	return part.Change{
		Apply: func() { before.api.Retire() }, Cancel: func() { next.api.Close() },
		Retire: func(context.Context) { before.api.Close() }, // else the contexts of the stop would keep the routes
	}, nil
}

// open makes the routes of a configuration; before are the limits of clients over HTTP that it replaces, nil for none.
func (r *routes) open(g *generation, before *kit.Limits) error {
	l := g.config.Limits
	g.limits = kit.NewLimits(kit.LimitOptions{Address: kit.Rates(l.Address), User: kit.Rates(l.User), Loopback: l.Loopback, Previous: before}, r.metrics.registry)
	o := api.Options{
		Stopping: r.lifetime.draining, Cut: r.lifetime.cut, Ready: r.health.ready, Alive: r.lifetime.err, Registry: r.metrics.registry, Metrics: r.publicMetrics(g), Logger: r.log, Hosts: g.hosts(), Base: g.base(), Pages: r.pages,
	}
	if r.roles.has(plan.RoleFront) {
		contract, err := contractOf(g)
		if err != nil {
			return err
		}
		openAPI := plan.DocumentOf(contract, openapi.Document)
		r.kept.SetMax(l.Idempotency)
		o.Keyed = idempotent.New(idempotent.Options{Requests: g.set.Store(config.RequestStore), TombstoneRetention: g.config.Tombstones, Kept: r.kept})
		o.Login, o.Objects, o.Files, o.Events = loginOptions(g, r.log), objectOptions(g), fileOptions(g, r.uploads), g.live
		o.Waiter, o.Proxies, o.Documents, o.Limits = g.waiter, g.config.Proxies, documents(g, contract, openAPI), g.limits
		o.Development, o.ProxyHeader = g.config.Development, g.config.ProxyHeader
		o.Console = r.console(g, openAPI)
		o.Site, o.Static = site(g), staticOptions(g.config)
	}
	g.api = api.New(o)
	g.handler = g.traced(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		announceTLS(g.config, w, req)
		g.api.ServeHTTP(w, req)
	}))
	return nil
}

// publicMetrics returns the metrics on the port of HTTP: with a token alone, unless the process serves no
// clients there. It is nil for none.
func (r *routes) publicMetrics(g *generation) *system.Metrics {
	m := g.config.Metrics
	if m.Token == "" && (r.roles.has(plan.RoleFront) || m.Listen != "") {
		return nil
	}
	return system.NewMetrics(r.metrics.all(), string(m.Token))
}

// announceTLS has browsers use https alone, for the name that they used. An address, and the machine itself, are not
// such a name: on localhost it would hold for the programs of all other ports as well.
func announceTLS(c *config.Config, w http.ResponseWriter, r *http.Request) {
	hsts := c.HTTP.HSTS
	if r.TLS == nil || hsts <= 0 {
		return
	}
	host := kit.WithoutPort(r.Host)
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" {
		return
	}
	w.Header().Set("Strict-Transport-Security", "max-age="+strconv.Itoa(int(hsts/time.Second)))
}
