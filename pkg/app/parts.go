package app

import (
	"time"

	"belfry/listeners/cascade"
	"belfry/listeners/mail"
	"belfry/listeners/mapping"
	"belfry/listeners/sweep"
	"belfry/pkg/api/pagememory"
	"belfry/pkg/app/plan"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// wiring is the parts of a process. Whoever needs another part has a field for it, or for what it asks.
type wiring struct {
	parts []servedPart // those that the roles of the process need, in the order in which they start

	metrics  *metrics
	startup  *startup
	front    *front
	secure   *secure
	stores   *stores
	health   *health
	missed   *logWatch
	filling  *filling
	backups  *backupSchedule
	list     *processList
	mailers  *mailers
	views    *views
	settings *settingsCheck
}

// degradedFirst are the parts whose shortcomings /readyz lists first, in this order.
var degradedFirst = []string{"the check of the bus's settings", "the relay", "the watch of the log", "the schedule of backups", "collecting unique values", "the search indexes", "the mailers"}

// newWiring makes the parts of a process.
func newWiring(a *App) *wiring {
	w := &wiring{metrics: newMetrics(), startup: &startup{}}
	served, log, fail, asked := a.served, a.log, a.lifetime.fail, w.metrics.asked
	run, began, pages := object.NewUUID(), time.Now(), pagememory.New(store.MaxPageBytes)
	wait := awaiter{startup: w.startup, log: log}
	missing := &missingConsumers{}
	runner := listeners{log: log, missing: missing, fail: fail}

	folder := &dataFolder{startup: w.startup, log: log}
	w.secure = &secure{served: served, log: log, fail: fail, metrics: asked}
	w.front = &front{served: served, startup: w.startup, secure: w.secure, log: log, lifetime: a.lifetime}
	w.health = &health{served: served, roles: a.roles, metrics: w.metrics, lifetime: a.lifetime, missing: missing.err, shortcomings: func() []string { return a.parts.Check(degradedFirst...) }}
	w.stores = &stores{awaiter: wait, served: served, metrics: asked}
	w.mailers = newMailers(served, log, w.metrics)
	w.filling = &filling{roles: a.roles, log: log, metrics: asked}
	w.missed = &logWatch{served: served, roles: a.roles, log: log, metrics: asked}
	w.backups = &backupSchedule{served: served, run: run, log: log, metrics: asked}
	w.list = &processList{served: served, roles: a.roles, log: log, mailers: w.mailers, run: run, began: began}
	w.settings = &settingsCheck{served: served, roles: a.roles, log: log, metrics: asked}
	applying := &workers{listeners: runner, served: served, roles: a.roles, metrics: w.metrics}
	w.views = &views{
		served: served, roles: a.roles, log: log, gatherer: w.metrics.registry, missed: w.missed.Missed, overflow: applying.Overflow, filled: w.filling.Status,
		system: &systemView{roles: a.roles, log: log, health: w.health, mailers: w.mailers, elsewhere: w.list.failsElsewhere, began: began, lastReload: a.lastReload.Load},
	}

	serves, mailing := a.roles.has(plan.RoleFront), a.roles.has(mail.Name)
	working := a.roles.has(mapping.Name) || a.roles.has(cascade.Name)
	for _, p := range []struct {
		needed bool
		part   servedPart
	}{
		{true, folder.lockPart()},
		{true, (&traces{log: log}).part()},
		{true, w.front.listenPart()},
		{serves, w.secure.redirects()},
		{serves, w.secure.certificates()},
		{true, folder.waitPart()},
		{true, (&metricsPort{metrics: w.metrics.all(), log: log, fail: fail}).part()},
		{true, (&backends{awaiter: wait, served: served, metrics: asked}).part()},
		{true, (&connection{log: log, metrics: asked}).part()},
		{true, (&relay{log: log, metrics: asked, unavailable: w.health.unavailable}).part()},
		{true, w.stores.part()},
		{true, restoreCheck(wait)},
		{true, (&storages{metrics: w.metrics.registry}).part()},
		{true, served.part()},
		{true, (&claims{log: log}).part()},
		{serves, waiterPart(served)},
		{true, w.mailers.part()},
		{serves || mailing, (&authentication{awaiter: wait, served: served, roles: a.roles, metrics: w.metrics.registry, mailers: w.mailers}).part()},
		{true, (&narrowing{log: log}).part()},
		{true, w.filling.part()},
		{working, applying.part()},
		{working || mailing, w.missed.part()},
		{mailing, (&mails{listeners: runner, served: served}).part()},
		{a.roles.has(sweep.Name), (&sweeper{listeners: runner, served: served}).part()},
		{a.roles.has(plan.RoleSearch), (&searching{served: served, log: log, metrics: asked}).part()},
		{true, (&janitor{served: served, log: log}).part()},
		{true, (&folderWatch{served: served, fail: fail}).part()},
		{true, w.settings.part()},
		{true, w.backups.part()},
		{true, w.list.part()},
		{true, (&control{
			served: served, log: log, metrics: w.metrics.registry, folder: folder, backups: w.backups, mailers: w.mailers, reload: a.controlReload,
			self: &self{served: served, roles: a.roles, health: w.health, list: w.list, began: began, waits: w.front.waits, outdated: a.outdated},
		}).part()},
		{serves, (&streams{served: served, log: log, metrics: w.metrics.registry}).part()},
		{true, w.health.part()},
		{serves, w.views.part()},
		{true, (&routes{roles: a.roles, log: log, metrics: w.metrics, lifetime: a.lifetime, health: w.health, pages: pages, console: w.views.options}).part()},
		{serves, (&operations{served: served, log: log, metrics: w.metrics.registry, pages: pages}).part()},
		{true, w.front.servePart()},
	} {
		if p.needed {
			w.parts = append(w.parts, p.part)
		}
	}
	return w
}
