package app

import (
	"context"
	"slices"

	"belfry/listeners/cascade"
	"belfry/listeners/mail"
	"belfry/listeners/mapping"
	"belfry/listeners/sweep"
	"belfry/pkg/app/plan"
)

// has reports whether this process has a role; it has all if none was given.
func (a *App) has(role string) bool { return len(a.roles) == 0 || slices.Contains(a.roles, role) }

// steps returns the functions that start the parts of belfry, in order, for the roles of this process.
func (a *serving) steps() []func(context.Context) error {
	front, mails := a.has(plan.RoleFront), a.has(mail.Name)
	var all []func(context.Context) error
	for _, step := range []struct {
		needed bool
		start  func(context.Context) error
	}{
		{true, a.takeData},
		{a.config.Tracing.Endpoint != "", a.startTracing},
		{true, a.listen},
		{true, a.awaitData},
		{a.config.Metrics.Listen != "", a.serveMetrics},
		{true, a.openBackends},
		{true, a.openBus},
		{true, a.startRelay},
		{true, a.openStores},
		{true, a.checkRestored},
		{true, a.openStorages},
		{true, a.startRetiring},
		{true, a.startClaims},
		{front, a.startWaiter},
		{front || mails, a.startAuth},
		{true, a.startNarrowing},
		{true, a.startFill},
		{a.has(mapping.Name) || a.has(cascade.Name), a.startWorkers},
		{a.has(mapping.Name) || a.has(cascade.Name) || mails, a.startMissed},
		{mails, a.startMail},
		{a.has(sweep.Name), a.startSweep},
		{a.has(plan.RoleSearch), a.startSearch},
		{true, a.startJanitor},
		{true, a.startWatch},
		{true, a.startBusCheck},
		{true, a.startBackups},
		{a.plan.Shared(), a.startRoster},
		{true, a.startControl},
		{front, a.serveBus},
		{front, a.startEvents},
		{true, a.serveHTTP},
	} {
		if step.needed {
			all = append(all, step.start)
		}
	}
	return all
}
