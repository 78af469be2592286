// Package routes has the parts of a process that serve clients: the routes of HTTP with their options, events for
// browsers, and operations of stores over the bus.
package routes

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"belfry/config"
	"belfry/pkg/api"
	"belfry/pkg/api/applied"
	"belfry/pkg/api/console"
	"belfry/pkg/api/files"
	"belfry/pkg/api/system"
	"belfry/pkg/app/health"
	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/serving"
	"belfry/pkg/binary"
	"belfry/pkg/httpkit"
	"belfry/pkg/pagememory"
	"belfry/pkg/store"
	"belfry/pkg/store/idempotent"
)

// Routes makes the routes of HTTP. A process without the role front only serves its health, and its metrics if these
// have no port of their own.
type Routes struct {
	Roles    serving.Roles
	Log      *slog.Logger
	Metrics  *serving.Metrics
	Lifetime *serving.Lifetime
	Health   *health.Health
	Pages    *pagememory.Budget // of lists, over HTTP and over the bus
	Console  func(g *serving.Generation, openAPI func() ([]byte, error)) *console.Options

	Uploads    *files.Memory // of uploads in flight
	Thumbnails *binary.Thumbnails

	kept *idempotent.Kept // for clients of requests with a key
}

// Part returns the functions that start, reload and stop it.
func (r *Routes) Part() serving.Part {
	return serving.Part{
		Name: "routes",
		Start: func(_ context.Context, first *serving.Generation) error {
			r.kept = idempotent.NewKept(first.Config.Limits.Idempotency, nil)
			return r.open(first, nil)
		},
		Reload: r.reload,
	}
}

// reload makes the routes of another configuration. Requests in flight complete with the previous routes.
func (r *Routes) reload(_ context.Context, before, next *serving.Generation) (part.Change, error) {
	if err := r.open(next, before.Limits); err != nil {
		return part.Change{}, err
	}
	return part.Change{
		Apply: func() { before.API.Retire() }, Cancel: func() { next.API.Close() },
		// otherwise the contexts of the stop would keep the routes reachable
		Retire: func(context.Context) { before.API.Close() },
	}, nil
}

// open makes the routes of a configuration; before are the HTTP limits of clients that it replaces, nil for none.
func (r *Routes) open(g *serving.Generation, before *httpkit.Limits) error {
	l := g.Config.Limits
	g.Limits = httpkit.NewLimits(l, before, r.Metrics.Registry)
	o := api.Options{
		Stopping: r.Lifetime.Draining, Cut: r.Lifetime.Cut, Ready: r.Health.Ready, Alive: r.Lifetime.Err,
		Registry: r.Metrics.Registry, Metrics: r.publicMetrics(g), Logger: r.Log, Hosts: g.Hosts(), Base: g.Base(),
		Pages: r.Pages,
	}
	if r.Roles.Has(plan.RoleFront) {
		contract, err := contractOf(g)
		if err != nil {
			return err
		}
		documents := documentsOf(g)
		r.kept.SetMax(l.Idempotency)
		o.Keyed = idempotent.New(idempotent.Options{Requests: g.Set.Store(config.RequestStore),
			TombstoneRetention: g.Config.Tombstones, Kept: r.kept})
		o.Contract, o.Login, o.Stores, o.Files, o.Events = contract, loginOptions(g, r.Log), g.Set.Stores(),
			fileOptions(g, r.Uploads, r.Thumbnails), g.Live
		o.Waiter, o.Proxies, o.Documents, o.Limits = g.Waiter, g.Config.Proxies, documents, g.Limits
		o.Development, o.ProxyHeader = g.Config.Development, g.Config.ProxyHeader
		o.Console = r.Console(g, documents.OpenAPI)
		o.Site, o.Static = site(g), staticOptions(g.Config)
	}
	g.API = api.New(o)
	g.Handler = g.Traced(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		announceTLS(g.Config, w, req)
		g.API.ServeHTTP(w, req)
	}))
	return nil
}

// publicMetrics returns the metrics on the port of HTTP; nil for none. They need a token, unless the process serves no
// clients there.
func (r *Routes) publicMetrics(g *serving.Generation) *system.Metrics {
	m := g.Config.Metrics
	if m.Token == "" && (r.Roles.Has(plan.RoleFront) || m.Listen != "") {
		return nil
	}
	return system.NewMetrics(r.Metrics.All(), string(m.Token))
}

// announceTLS makes browsers use only https for the host name of the request. It excludes addresses and localhost,
// since there it would apply to the programs of all other ports as well.
func announceTLS(c *config.Config, w http.ResponseWriter, r *http.Request) {
	hsts := c.HTTP.HSTS
	if r.TLS == nil || hsts <= 0 {
		return
	}
	host := httpkit.WithoutPort(r.Host)
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" {
		return
	}
	w.Header().Set("Strict-Transport-Security", "max-age="+strconv.Itoa(int(hsts/time.Second)))
}

// fileOptions are the routes of binary services.
func fileOptions(g *serving.Generation, uploads *files.Memory, thumbnails *binary.Thumbnails) []files.Options {
	var all []files.Options
	for _, name := range slices.Sorted(maps.Keys(g.Binaries)) {
		b := g.Config.Binaries[name]
		mounted := files.Options{Service: g.Binaries[name], Memory: uploads, Thumbnails: thumbnails}
		if b.S3 != nil {
			mounted.Presign = b.S3.Presign
		}
		all = append(all, mounted)
	}
	return all
}

// WaiterPart is the part that lets requests wait until workers have applied the consequences of their writes.
func WaiterPart(served *serving.Current) serving.Part {
	var waiter *applied.Waiter
	return serving.Part{
		Name: "waiting",
		Start: func(_ context.Context, first *serving.Generation) (err error) {
			waiter, err = applied.NewWaiter(first.Bus.Conn(), func(c store.Cause) []string {
				return served.Now().
					Set.Workers(c)
			})
			first.Waiter = waiter
			return err
		},
		Stop: func(context.Context) error {
			if waiter == nil {
				return nil
			}
			return waiter.Close()
		},
	}
}
