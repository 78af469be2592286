package app

import (
	"runtime"
	"sync/atomic"
	"time"

	"belfry/internal/logbuffer"
	"belfry/internal/memory"
	"belfry/listeners/cascade"
	"belfry/listeners/mail"
	"belfry/listeners/mapping"
	"belfry/listeners/sweep"
	"belfry/pkg/api/files"
	"belfry/pkg/app/accounts"
	"belfry/pkg/app/backups"
	"belfry/pkg/app/control"
	"belfry/pkg/app/data"
	"belfry/pkg/app/front"
	"belfry/pkg/app/health"
	"belfry/pkg/app/holders"
	"belfry/pkg/app/indexing"
	"belfry/pkg/app/mailers"
	"belfry/pkg/app/messaging"
	"belfry/pkg/app/modeling"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/roster"
	"belfry/pkg/app/routes"
	"belfry/pkg/app/serving"
	"belfry/pkg/app/views"
	"belfry/pkg/app/workers"
	"belfry/pkg/binary"
	"belfry/pkg/object"
	"belfry/pkg/pagememory"
	"belfry/pkg/store"
	"belfry/pkg/walk"
)

// wiring is the parts of a process. A part that needs another one has a field for it, or for a function of it.
type wiring struct {
	parts []serving.Part // the parts that the roles of the process need, in the order in which they start

	metrics *serving.Metrics
	front   *front.HTTP
	tls     *front.TLS
	health  *health.Health
	filling *workers.Filling
	missed  *workers.LogWatch
	copies  *workers.CopyLag
	walks   *workers.Walks
	backups *backups.Schedule
	views   *views.Views
}

// degradedFirst are the parts whose problems /readyz lists first, in this order.
var degradedFirst = []string{
	"the check of the bus's settings", "the relay", "the watch of the log", "the schedule of backups",
	"unique values and indexes", "the search indexes", "the mailers",
}

// newWiring makes the parts of a process: first the parts that others need, then all parts in the order in which they
// start.
func newWiring(a *App) *wiring {
	served, roles, log, lifetime := a.served, a.roles, a.log, a.lifetime
	metrics, startup := serving.NewMetrics(), &serving.Startup{}
	counted, asked := metrics.Registry, metrics.Asked
	run, began, pages := object.NewUUID(), time.Now(), pagememory.NewOf(memory.Of().Lists, store.MaxPageBytes)
	uploads := files.NewMemory(memory.Of().Uploads)
	thumbnails := binary.NewThumbnails(memory.Of().Pictures, runtime.GOMAXPROCS(0)/2)
	held := &holders.Holders{Served: served, Metrics: asked, Pages: pages, Uploads: uploads,
		Lines: logbuffer.Of(log)}
	wait := data.Awaiter{Startup: startup, Log: log}
	missing := &workers.Missing{}
	runner := workers.Runner{Log: log, Missing: missing, Fail: lifetime.Fail}

	w := &wiring{metrics: metrics}
	w.health = &health.Health{
		Served: served, Roles: roles, Metrics: metrics, Lifetime: lifetime, Missing: missing.Err,
		Shortcomings: func() []string { return a.parts.Check(degradedFirst...) },
	}
	w.tls = front.NewTLS(served, roles, log, lifetime, asked)
	w.front = &front.HTTP{Served: served, Startup: startup, TLS: w.tls, Log: log, Lifetime: lifetime}
	rate := walk.NewRate(0)
	w.filling = &workers.Filling{Roles: roles, Log: log, Metrics: asked, Rate: rate}
	w.copies = &workers.CopyLag{Served: served, Roles: roles, Log: log, Metrics: asked, Run: run}
	w.missed = &workers.LogWatch{Served: served, Roles: roles, Log: log, Metrics: asked, Filling: w.filling,
		Copies: w.copies}
	required, indexes := &data.Required{Log: log},
		&indexing.Indexing{Served: served, Log: log, Metrics: asked, Rate: rate}
	w.walks = &workers.Walks{Metrics: asked, Of: []func() []walk.Status{w.filling.Walks, required.Walks, indexes.Walks}}
	w.backups = &backups.Schedule{Served: served, Run: run, Log: log, Metrics: asked}
	chunks := &atomic.Bool{}
	folder := &data.Folder{Startup: startup, Log: log}
	mailing := mailers.New(served, log, metrics)
	processes := &roster.List{Served: served, Roles: roles, Log: log, Mailers: mailing, Run: run, Began: began,
		Chunks: chunks}
	working := &workers.Workers{Runner: runner, Served: served, Roles: roles, Metrics: metrics, Copies: w.copies}
	self := &control.Self{Served: served, Roles: roles, Health: w.health, List: processes, Began: began,
		Removed: w.filling.Removed, Waits: w.front.Waits, Outdated: a.outdated, Memory: held.Of}
	here := &control.Here{Served: served, Log: log, Metrics: counted, Backups: w.backups, Mailers: mailing, Self: self,
		Reload: a.controlReload}
	editor := &modeling.Editor{Served: served, Roles: roles, Log: log, Parse: a.parse, Reload: a.reloadEdited,
		Sharing: processes.Others}
	w.views = &views.Views{
		Editor: editor, Thumbnails: thumbnails,
		Served: served, Roles: roles, Log: log, Gatherer: counted, Missed: w.missed.Missed, Overflow: working.Overflow,
		Copies: w.copies.All,
		Filled: w.filling.Status,
		System: &views.System{Roles: roles, Log: log, Health: w.health, Mailers: mailing, Walks: w.walks.Status,
			Removed: w.filling.Removed, Elsewhere: processes.FailsElsewhere, Place: here.Place, Serving: here.Serving,
			Began: began, LastReload: a.lastReload.Load, Memory: held.Of},
	}

	clients, mails, sweeps, searches := roles.Has(plan.RoleFront), roles.Has(mail.Name), roles.Has(sweep.Name),
		roles.Has(plan.RoleSearch)
	works := roles.Has(mapping.Name) || roles.Has(cascade.Name)
	for _, p := range []struct {
		needed bool
		part   serving.Part
	}{
		{true, folder.LockPart()},
		{true, (&front.Traces{Log: log}).Part()},
		{true, w.front.ListenPart()},
		{clients, w.tls.Redirects()},
		{true, w.tls.Certificates()},
		{true, folder.WaitPart()},
		{true, (&front.MetricsPort{Metrics: metrics.All(), Log: log, Fail: lifetime.Fail}).Part()},
		{true, (&data.Backends{Awaiter: wait, Served: served, Metrics: asked}).Part()},
		{true, (&messaging.Connection{Log: log, Metrics: asked}).Part()},
		{true, (&messaging.Relay{Log: log, Metrics: asked, Unavailable: w.health.Unavailable}).Part()},
		{true, (&data.Stores{Awaiter: wait, Served: served, Metrics: asked, Chunks: chunks}).Part()},
		{true, data.RestoreCheck(wait)},
		{true, (&data.Storages{Served: served, Metrics: counted}).Part()},
		{true, served.Part()},
		{true, required.Part()},
		{clients, routes.WaiterPart(served)},
		{true, mailing.Part()},
		{clients || mails,
			(&accounts.Authentication{Awaiter: wait, Served: served, Roles: roles, Metrics: counted,
				Mailers: mailing}).Part()},
		{true, (&messaging.Narrowing{Log: log}).Part()},
		{true, w.filling.Part()},
		{true, w.copies.Part()},
		{works, working.Part()},
		{works || mails, w.missed.Part()},
		{mails, (&workers.Mails{Runner: runner, Served: served}).Part()},
		{sweeps, (&workers.Sweeper{Runner: runner, Served: served}).Part()},
		{searches, indexes.Part()},
		{true, w.walks.Part()},
		{true, (&data.Janitor{Served: served, Log: log}).Part()},
		{true, (&data.FolderWatch{Served: served, Fail: lifetime.Fail}).Part()},
		{true, (&messaging.SettingsCheck{Served: served, Roles: roles, Log: log, Metrics: asked}).Part()},
		{true, w.backups.Part()},
		{true, held.Part()},
		{true, processes.Part()},
		{true, (&control.Control{Served: served, Log: log, Folder: folder, Here: here}).Part()},
		{clients, (&routes.Streams{Served: served, Log: log, Metrics: counted}).Part()},
		{true, w.health.Part()},
		{clients, w.views.Part()},
		{clients, editor.Part()},
		{true, (&routes.Routes{Roles: roles, Log: log, Metrics: metrics, Lifetime: lifetime, Health: w.health,
			Pages: pages, Uploads: uploads, Thumbnails: thumbnails, Console: w.views.Options}).Part()},
		{clients, (&routes.Operations{Served: served, Log: log, Metrics: counted, Pages: pages}).Part()},
		{true, w.front.ServePart()},
	} {
		if p.needed {
			w.parts = append(w.parts, p.part)
		}
	}
	return w
}
