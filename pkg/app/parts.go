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
func (a *App) processParts() []part.Part[*serving] {
	front, mails := a.has(plan.RoleFront), a.has(mail.Name)
	maps := a.has(mapping.Name) || a.has(cascade.Name)
	var all []part.Part[*serving]
	for _, p := range []struct {
		needed bool
		part   part.Part[*serving]
	}{
		{true, a.step("the lock of the data folder", (*serving).takeData)},
		{true, (&traces{log: a.log}).part()},
		{true, a.step("HTTP while starting", (*serving).listen)},
		{front, a.secure.redirects()},
		{true, a.secure.certificates()},
		{true, a.step("the wait for the data folder", (*serving).awaitData)},
		{true, a.metricsPort.part()},
		{true, a.opened.part()},
		{true, a.step("the bus", (*serving).openBus).With(reloadBus)},
		{true, a.step("the relay", (*serving).startRelay)},
		{true, a.step("stores", (*serving).openStores).With(reloadStores)},
		{true, a.step("the check of a restore", (*serving).checkRestored)},
		{true, (&storages{registry: a.registry}).part()},
		{true, (&a.served).part()},
		{true, claimsPart(a)},
		{front, a.step("waiting", (*serving).startWaiter)},
		{front || mails, a.step("authentication", (*serving).startAuth).With(reloadAuth)},
		{true, a.step("the narrowing of consumers", (*serving).startNarrowing)},
		{true, a.fills.part()},
		{maps, newWorkers(a).part()},
		{maps || mails, a.step("the watch of the log", (*serving).startMissed)},
		{mails, mailPart(a)},
		{a.has(sweep.Name), newSweeper(a).part()},
		{a.has(plan.RoleSearch), (&searching{app: a}).part()},
		{true, a.step("the janitor", (*serving).startJanitor)},
		{true, a.step("the watch of folders", (*serving).startWatch)},
		{true, a.step("the check of the bus's settings", (*serving).startBusCheck)},
		{true, a.step("the schedule of backups", (*serving).startBackups)},
		{true, a.step("the list of processes", (*serving).startRoster)},
		{true, a.step("control", (*serving).startControl)},
		{front, a.step("events for browsers", (*serving).startEvents).With(reloadEvents)},
		{true, a.step("routes", (*serving).startRoutes).With(reloadRoutes)},
		{front, a.step("operations over the bus", (*serving).serveBus).With(reloadOperations)},
		{true, a.step("HTTP", (*serving).serveHTTP)},
	} {
		if p.needed {
			all = append(all, p.part)
		}
	}
	return all
}

// step is a part whose start registers what its stop does, by onStop.
func (a *App) step(name string, start func(*serving, context.Context) error) part.Part[*serving] {
	own := &stops{}
	return part.Part[*serving]{
		Name: name, Stop: own.stop,
		Start: func(ctx context.Context, first *serving) error {
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
