package app

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"belfry/internal/count"
	"belfry/pkg/errs"
	"belfry/pkg/operations/doctor"
)

// examineTimeout is for how long the serving process examines itself.
const examineTimeout = 10 * time.Second

// doctorReply is what a process that serves says of itself.
type doctorReply struct {
	Version  string           `json:"version"`
	Findings []doctor.Finding `json:"findings"`
}

// examine returns what only this process knows.
func (a *App) examine(ctx context.Context) (*doctorReply, error) {
	if a.front.starting.Load() != nil {
		return nil, errs.New(errs.Unavailable, "%s", a.front.waiting.Load().Message)
	}
	checks := []doctor.Check{
		{Area: areaProcess, Ask: a.askSelf},
		{Area: areaProcess, Subject: "parts", Ask: a.askParts},
		{Area: areaConfig, Ask: a.askOutdated},
		{Area: areaVersion, Ask: a.askRoster},
	}
	if now := a.now(); len(now.config.Bus.URL) == 0 {
		x := &busExamination{plan: now.plan, user: "of this process", own: true, now: time.Now, connect: func() (askedBus, func(), error) {
			return a.bus, func() {}, a.bus.Ready(ctx)
		}}
		checks = append(checks, doctor.Check{Area: areaBus, Subject: "embedded", Ask: x.ask})
	} else {
		checks = append(checks, a.workRightsCheck())
	}
	r := doctor.Run(ctx, checks, examineTimeout)
	r.Redact(a.now().config.Secrets())
	return &doctorReply{Version: Version(), Findings: r.Findings}, nil
}

// askSelf reports whether the process is ready, and what operators should know although it is.
func (a *App) askSelf(ctx context.Context) []doctor.Finding {
	roles := a.roles
	if len(roles) == 0 {
		roles = Roles()
	}
	var all []doctor.Finding
	if _, err := a.ready(ctx); err != nil {
		all = append(all, doctor.Finding{Level: doctor.Problem, Name: "process.notReady", Says: "/readyz is 503: " + messageOf(err), Do: "see what else is wrong here: a process is not ready because of a part of it"})
	} else {
		all = append(all, doctor.Finding{Level: doctor.OK, Name: "process.ready", Says: fmt.Sprintf("version %s, process %d, since %s, roles %s", Version(), os.Getpid(), a.began.UTC().Format(time.RFC3339), strings.Join(roles, ", "))})
	}
	for _, says := range a.shortcomings() {
		all = append(all, doctor.Finding{Level: doctor.Warning, Name: "process.degraded", Says: says, Do: "belfry's log says more; docs/guides/monitor.md lists the conditions"})
	}
	if s := a.relay.Stats(); s.Events > 0 && s.Unavailable {
		all = append(all, doctor.Finding{Level: doctor.Problem, Name: "process.outbox", Says: count.Of(s.Events, "event") + " can't be published, and no listener has them yet", Do: "see what is wrong with the bus; they are published when it accepts events"})
	}
	return all
}

// askParts reports which parts do not work, as /readyz does.
func (a *App) askParts(ctx context.Context) []doctor.Finding {
	var all []doctor.Finding
	states := a.states(ctx)
	for i, err := range states {
		if err != nil {
			all = append(all, doctor.Finding{Level: doctor.Problem, Name: "process.part", Subject: a.parts[i].title(), Says: messageOf(err), Do: "belfry's log says since when; it uses it again by itself once it works"})
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
		return []doctor.Finding{{Level: doctor.Problem, Name: "configuration.broken", Subject: a.now().config.File(), Says: "the file has changed since belfry read it, and belfry would not start with it: " + messageOf(err), Do: "correct the file before belfry is restarted"}}
	}
	if keys := a.changedSince(c, p); len(keys) > 0 {
		return []doctor.Finding{{Level: doctor.Warning, Name: "configuration.outdated", Subject: c.File(), Says: "belfry still serves the configuration before: since then " + strings.Join(keys, ", ") + " changed", Do: "`belfry reload` has it read the file"}}
	}
	return nil
}
