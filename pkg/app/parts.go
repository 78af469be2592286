package app

import (
	"context"
	"errors"

	"belfry/listeners/cascade"
	"belfry/listeners/mail"
	"belfry/listeners/mapping"
	"belfry/listeners/sweep"
	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
)

// processParts are the parts of a process in the order in which they start, for its roles.
func (a *App) processParts() []part.Part[*generation] {
	front, mails := a.has(plan.RoleFront), a.has(mail.Name)
	maps := a.has(mapping.Name) || a.has(cascade.Name)
	var all []part.Part[*generation]
	for _, p := range []struct {
		needed bool
		part   part.Part[*generation]
	}{
		{true, a.step("the lock of the data folder", (*generation).takeData)},
		{true, (&traces{log: a.log}).part()},
		{true, a.step("HTTP while starting", (*generation).listen)},
		{front, a.secure.redirects()},
		{front, a.secure.certificates()},
		{true, a.step("the wait for the data folder", (*generation).awaitData)},
		{true, a.metricsPort.part()},
		{true, a.opened.part()},
		{true, a.step("the bus", (*generation).openBus).With(reloadBus)},
		{true, a.step("the relay", (*generation).startRelay)},
		{true, a.step("stores", (*generation).openStores).With(reloadStores)},
		{true, a.step("the check of a restore", (*generation).checkRestored)},
		{true, (&storages{registry: a.registry}).part()},
		{true, a.served.part()},
		{true, a.step("collecting unique values", (*generation).startClaims)},
		{front, a.step("waiting", (*generation).startWaiter)},
		{front || mails, a.step("authentication", (*generation).startAuth).With(reloadAuth)},
		{true, a.step("the narrowing of consumers", (*generation).startNarrowing)},
		{true, a.step("the filling of arrays", (*generation).startFill).With(reloadFill)},
		{maps, newWorkers(a).part()},
		{maps || mails, a.step("the watch of the log", (*generation).startMissed)},
		{mails, mailPart(a)},
		{a.has(sweep.Name), newSweeper(a).part()},
		{a.has(plan.RoleSearch), (&searching{app: a}).part()},
		{true, a.step("the janitor", (*generation).startJanitor)},
		{true, a.step("the watch of folders", (*generation).startWatch)},
		{true, a.step("the check of the bus's settings", (*generation).startBusCheck)},
		{true, a.step("the schedule of backups", (*generation).startBackups)},
		{true, a.step("the list of processes", (*generation).startRoster)},
		{true, a.step("control", (*generation).startControl)},
		{front, a.step("events for browsers", (*generation).startEvents).With(reloadEvents)},
		{true, a.step("routes", (*generation).startRoutes).With(reloadRoutes)},
		{front, a.step("operations over the bus", (*generation).serveBus).With(reloadOperations)},
		{true, a.step("HTTP", (*generation).serveHTTP)},
	} {
		if p.needed {
			all = append(all, p.part)
		}
	}
	return all
}

// step is a part whose start registers what its stop does, by onStop.
func (a *App) step(name string, start func(*generation, context.Context) error) part.Part[*generation] {
	own := &stops{}
	return part.Part[*generation]{
		Name: name, Stop: own.stop,
		Start: func(ctx context.Context, first *generation) error {
			a.registering = own
			return start(first, ctx)
		},
	}
}

// stops are what the stop of a part does, in the reverse order.
type stops struct {
	names []string
	do    []func(ctx context.Context) error
}

func (s *stops) stop(ctx context.Context) error {
	var all []error
	for i := len(s.do) - 1; i >= 0; i-- {
		if err := s.do[i](ctx); err != nil {
			all = append(all, errs.Wrap(err, errs.KindOf(err), "%s", s.names[i]))
		}
	}
	return errors.Join(all...)
}

func (a *App) onStop(name string, do func(ctx context.Context) error) {
	a.registering.names, a.registering.do = append(a.registering.names, name), append(a.registering.do, do)
}
