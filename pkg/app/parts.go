package app

import (
	"time"

	"belfry/listeners/cascade"
	"belfry/listeners/mail"
	"belfry/listeners/mapping"
	"belfry/listeners/sweep"
	"belfry/pkg/api/pagememory"
	"belfry/pkg/app/accounts"
	"belfry/pkg/app/backups"
	"belfry/pkg/app/control"
	"belfry/pkg/app/data"
	"belfry/pkg/app/front"
	"belfry/pkg/app/health"
	"belfry/pkg/app/indexing"
	"belfry/pkg/app/mailers"
	"belfry/pkg/app/messaging"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/roster"
	"belfry/pkg/app/routes"
	"belfry/pkg/app/serving"
	"belfry/pkg/app/views"
	"belfry/pkg/app/workers"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// wiring is the parts of a process. Whoever needs another part has a field for it, or for what it asks.
type wiring struct {
	parts []serving.Part // those that the roles of the process need, in the order in which they start

	metrics  *serving.Metrics
	startup  *serving.Startup
	front    *front.HTTP
	secure   *front.TLS
	stores   *data.Stores
	health   *health.Health
	missed   *workers.LogWatch
	filling  *workers.Filling
	backups  *backups.Schedule
	list     *roster.List
	mailers  *mailers.Mailers
	views    *views.Views
	settings *messaging.SettingsCheck
}

// degradedFirst are the parts whose shortcomings /readyz lists first, in this order.
var degradedFirst = []string{"the check of the bus's settings", "the relay", "the watch of the log", "the schedule of backups", "collecting unique values", "the search indexes", "the mailers"}

// newWiring makes the parts of a process.
func newWiring(a *App) *wiring {
	w := &wiring{metrics: serving.NewMetrics(), startup: &serving.Startup{}}
	served, log, fail, asked := a.served, a.log, a.lifetime.Fail, w.metrics.Asked
	run, began, pages := object.NewUUID(), time.Now(), pagememory.New(store.MaxPageBytes)
	wait := data.Awaiter{Startup: w.startup, Log: log}
	missing := &workers.Missing{}
	runner := workers.Runner{Log: log, Missing: missing, Fail: fail}

	folder := &data.Folder{Startup: w.startup, Log: log}
	w.secure = &front.TLS{Served: served, Log: log, Fail: fail, Metrics: asked}
	w.front = &front.HTTP{Served: served, Startup: w.startup, TLS: w.secure, Log: log, Lifetime: a.lifetime}
	w.health = &health.Health{Served: served, Roles: a.roles, Metrics: w.metrics, Lifetime: a.lifetime, Missing: missing.Err, Shortcomings: func() []string { return a.parts.Check(degradedFirst...) }}
	w.stores = &data.Stores{Awaiter: wait, Served: served, Metrics: asked}
	w.mailers = mailers.New(served, log, w.metrics)
	w.filling = &workers.Filling{Roles: a.roles, Log: log, Metrics: asked}
	w.missed = &workers.LogWatch{Served: served, Roles: a.roles, Log: log, Metrics: asked}
	w.backups = &backups.Schedule{Served: served, Run: run, Log: log, Metrics: asked}
	w.list = &roster.List{Served: served, Roles: a.roles, Log: log, Mailers: w.mailers, Run: run, Began: began}
	w.settings = &messaging.SettingsCheck{Served: served, Roles: a.roles, Log: log, Metrics: asked}
	applying := &workers.Workers{Runner: runner, Served: served, Roles: a.roles, Metrics: w.metrics}
	w.views = &views.Views{
		Served: served, Roles: a.roles, Log: log, Gatherer: w.metrics.Registry, Missed: w.missed.Missed, Overflow: applying.Overflow, Filled: w.filling.Status,
		System: &views.System{Roles: a.roles, Log: log, Health: w.health, Mailers: w.mailers, Elsewhere: w.list.FailsElsewhere, Began: began, LastReload: a.lastReload.Load},
	}

	serves, mailing := a.roles.Has(plan.RoleFront), a.roles.Has(mail.Name)
	working := a.roles.Has(mapping.Name) || a.roles.Has(cascade.Name)
	for _, p := range []struct {
		needed bool
		part   serving.Part
	}{
		{true, folder.LockPart()},
		{true, (&front.Traces{Log: log}).Part()},
		{true, w.front.ListenPart()},
		{serves, w.secure.Redirects()},
		{serves, w.secure.Certificates()},
		{true, folder.WaitPart()},
		{true, (&front.MetricsPort{Metrics: w.metrics.All(), Log: log, Fail: fail}).Part()},
		{true, (&data.Backends{Awaiter: wait, Served: served, Metrics: asked}).Part()},
		{true, (&messaging.Connection{Log: log, Metrics: asked}).Part()},
		{true, (&messaging.Relay{Log: log, Metrics: asked, Unavailable: w.health.Unavailable}).Part()},
		{true, w.stores.Part()},
		{true, data.RestoreCheck(wait)},
		{true, (&data.Storages{Metrics: w.metrics.Registry}).Part()},
		{true, served.Part()},
		{true, (&data.Claims{Log: log}).Part()},
		{serves, routes.WaiterPart(served)},
		{true, w.mailers.Part()},
		{serves || mailing, (&accounts.Authentication{Awaiter: wait, Served: served, Roles: a.roles, Metrics: w.metrics.Registry, Mailers: w.mailers}).Part()},
		{true, (&messaging.Narrowing{Log: log}).Part()},
		{true, w.filling.Part()},
		{working, applying.Part()},
		{working || mailing, w.missed.Part()},
		{mailing, (&workers.Mails{Runner: runner, Served: served}).Part()},
		{a.roles.Has(sweep.Name), (&workers.Sweeper{Runner: runner, Served: served}).Part()},
		{a.roles.Has(plan.RoleSearch), (&indexing.Indexing{Served: served, Log: log, Metrics: asked}).Part()},
		{true, (&data.Janitor{Served: served, Log: log}).Part()},
		{true, (&data.FolderWatch{Served: served, Fail: fail}).Part()},
		{true, w.settings.Part()},
		{true, w.backups.Part()},
		{true, w.list.Part()},
		{true, (&control.Control{
			Served: served, Log: log, Metrics: w.metrics.Registry, Folder: folder, Backups: w.backups, Mailers: w.mailers, Reload: a.controlReload,
			Self: &control.Self{Served: served, Roles: a.roles, Health: w.health, List: w.list, Began: began, Waits: w.front.Waits, Outdated: a.outdated},
		}).Part()},
		{serves, (&routes.Streams{Served: served, Log: log, Metrics: w.metrics.Registry}).Part()},
		{true, w.health.Part()},
		{serves, w.views.Part()},
		{true, (&routes.Routes{Roles: a.roles, Log: log, Metrics: w.metrics, Lifetime: a.lifetime, Health: w.health, Pages: pages, Console: w.views.Options}).Part()},
		{serves, (&routes.Operations{Served: served, Log: log, Metrics: w.metrics.Registry, Pages: pages}).Part()},
		{true, w.front.ServePart()},
	} {
		if p.needed {
			w.parts = append(w.parts, p.part)
		}
	}
	return w
}
