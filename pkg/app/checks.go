package app

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"belfry/internal/count"
	"belfry/pkg/app/examine"
	"belfry/pkg/app/open"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
	"belfry/pkg/operations/doctor"
)

// examine returns what only this process knows.
func (a *App) examine(ctx context.Context) (*examine.DoctorReply, error) {
	if a.front.starting.Load() != nil {
		return nil, errs.New(errs.Unavailable, "%s", a.front.waiting.Load().Message)
	}
	checks := []doctor.Check{
		{Area: examine.AreaProcess, Ask: a.askSelf},
		{Area: examine.AreaProcess, Subject: "parts", Ask: a.askParts},
		{Area: examine.AreaConfig, Ask: a.askOutdated},
		{Area: examine.AreaVersion, Ask: a.askRoster},
	}
	if now := a.now(); len(now.config.Bus.URL) == 0 {
		x := &examine.BusExamination{Plan: now.plan, User: "of this process", Own: true, Now: time.Now, Connect: func() (examine.AskedBus, func(), error) {
			return a.bus, func() {}, a.bus.Ready(ctx)
		}}
		checks = append(checks, doctor.Check{Area: examine.AreaBus, Subject: "embedded", Ask: x.Ask})
	} else {
		checks = append(checks, a.workRightsCheck())
	}
	r := doctor.Run(ctx, checks, examineTimeout)
	r.Redact(a.now().config.Secrets())
	return &examine.DoctorReply{Version: plan.Version(), Findings: r.Findings}, nil
}

// askSelf reports whether the process is ready, and what operators should know although it is.
func (a *App) askSelf(ctx context.Context) []doctor.Finding {
	roles := a.roles
	if len(roles) == 0 {
		roles = plan.Roles()
	}
	var all []doctor.Finding
	if _, err := a.ready(ctx); err != nil {
		all = append(all, doctor.Finding{Level: doctor.Problem, Name: "process.notReady", Says: "/readyz is 503: " + examine.MessageOf(err), Do: "see what else is wrong here: a process is not ready because of a part of it"})
	} else {
		all = append(all, doctor.Finding{Level: doctor.OK, Name: "process.ready", Says: fmt.Sprintf("version %s, process %d, since %s, roles %s", plan.Version(), os.Getpid(), a.began.UTC().Format(time.RFC3339), strings.Join(roles, ", "))})
	}
	for _, says := range a.shortcomings() {
		all = append(all, doctor.Finding{Level: doctor.Warning, Name: "process.degraded", Says: says, Do: "belfry's log says more; docs/guides/monitor.md lists the conditions"})
	}
	if s := a.relay.Stats(); s.Events > 0 && s.Unavailable {
		all = append(all, doctor.Finding{Level: doctor.Problem, Name: "process.outbox", Says: count.Of(s.Events, "event") + " can't be published, and no listener has them yet", Do: "see what is wrong with the bus; they are published when it accepts events"})
	}
	ctx, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	if unused, err := open.UnusedStores(ctx, a.now().config, a.now().backends); err == nil {
		all = append(all, examine.UnusedFindings(unused)...)
	}
	return all
}

// askParts reports which parts do not work, as /readyz does.
func (a *App) askParts(ctx context.Context) []doctor.Finding {
	var all []doctor.Finding
	states := a.states(ctx)
	for i, err := range states {
		if err != nil {
			all = append(all, doctor.Finding{Level: doctor.Problem, Name: "process.part", Subject: a.now().depends[i].title(), Says: examine.MessageOf(err), Do: "belfry's log says since when; it uses it again by itself once it works"})
		}
	}
	if len(all) == 0 {
		all = append(all, doctor.Finding{Level: doctor.OK, Name: "process.parts", Says: "the " + count.Of(len(states), "part") + " that it depends on work"})
	}
	return all
}

// askOutdated reports whether the files have another configuration than this process serves.
func (a *App) askOutdated(ctx context.Context) []doctor.Finding {
	if a.reload.Read == nil {
		return nil
	}
	c, p, err := a.readAgain(ctx)
	if err != nil {
		return []doctor.Finding{{Level: doctor.Problem, Name: "configuration.broken", Subject: a.now().config.File(), Says: "the file has changed since belfry read it, and belfry would not start with it: " + examine.MessageOf(err), Do: "correct the file before belfry is restarted"}}
	}
	if keys := a.changedSince(c, p); len(keys) > 0 {
		return []doctor.Finding{{Level: doctor.Warning, Name: "configuration.outdated", Subject: c.File(), Says: "belfry still serves the configuration before: since then " + strings.Join(keys, ", ") + " changed", Do: "`belfry reload` has it read the file"}}
	}
	return nil
}
