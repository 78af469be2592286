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
	"belfry/pkg/operations/doctor"
)

// examineTimeout is for how long the serving process examines itself.
const examineTimeout = 10 * time.Second

// self is what a process that serves says of itself.
type self struct {
	served   *current
	roles    roles
	health   *health
	list     *processList
	began    time.Time
	waits    func() error // what the start waits for; nil once requests are served
	outdated func(ctx context.Context) []doctor.Finding
}

// examine returns what only this process knows.
func (s *self) examine(ctx context.Context) (*examine.DoctorReply, error) {
	if err := s.waits(); err != nil {
		return nil, err
	}
	checks := []doctor.Check{
		{Area: examine.AreaProcess, Ask: s.askSelf},
		{Area: examine.AreaProcess, Subject: "parts", Ask: s.askParts},
		{Area: examine.AreaConfig, Ask: s.outdated},
		{Area: examine.AreaVersion, Ask: s.list.ask},
	}
	now := s.served.now()
	if len(now.config.Bus.URL) == 0 {
		x := &examine.BusExamination{Plan: now.plan, User: "of this process", Own: true, Now: time.Now, Connect: func() (examine.AskedBus, func(), error) {
			return now.bus, func() {}, now.bus.Ready(ctx)
		}}
		checks = append(checks, doctor.Check{Area: examine.AreaBus, Subject: "embedded", Ask: x.Ask})
	} else {
		checks = append(checks, s.workRightsCheck())
	}
	r := doctor.Run(ctx, checks, examineTimeout)
	r.Redact(now.config.Secrets())
	return &examine.DoctorReply{Version: plan.Version(), Findings: r.Findings}, nil
}

// askSelf reports whether the process is ready, and what operators should know although it is.
func (s *self) askSelf(ctx context.Context) []doctor.Finding {
	var all []doctor.Finding
	if _, err := s.health.ready(ctx); err != nil {
		all = append(all, doctor.Finding{Level: doctor.Problem, Name: "process.notReady", Says: "/readyz is 503: " + examine.MessageOf(err), Do: "see what else is wrong here: a process is not ready because of a part of it"})
	} else {
		all = append(all, doctor.Finding{Level: doctor.OK, Name: "process.ready", Says: fmt.Sprintf("version %s, process %d, since %s, roles %s", plan.Version(), os.Getpid(), s.began.UTC().Format(time.RFC3339), strings.Join(s.roles.names(), ", "))})
	}
	for _, says := range s.health.shortcomings() {
		all = append(all, doctor.Finding{Level: doctor.Warning, Name: "process.degraded", Says: says, Do: "belfry's log says more; docs/guides/monitor.md lists the conditions"})
	}
	if o := s.served.now().relay.Stats(); o.Events > 0 && o.Unavailable {
		all = append(all, doctor.Finding{Level: doctor.Problem, Name: "process.outbox", Says: count.Of(o.Events, "event") + " can't be published, and no listener has them yet", Do: "see what is wrong with the bus; they are published when it accepts events"})
	}
	return all
}

// askParts reports which parts do not work, as /readyz does.
func (s *self) askParts(ctx context.Context) []doctor.Finding {
	var all []doctor.Finding
	states := s.health.states(ctx)
	for _, state := range states {
		if err := state.err; err != nil {
			all = append(all, doctor.Finding{Level: doctor.Problem, Name: "process.part", Subject: state.of.title(), Says: examine.MessageOf(err), Do: "belfry's log says since when; it uses it again by itself once it works"})
		}
	}
	if len(all) == 0 {
		all = append(all, doctor.Finding{Level: doctor.OK, Name: "process.parts", Says: "the " + count.Of(len(states), "part") + " that it depends on work"})
	}
	return all
}

// workRightsCheck asks for the rights that the workers of this process need.
func (s *self) workRightsCheck() doctor.Check {
	return doctor.Check{Area: examine.AreaBus, Subject: examine.WhatWorkers, Ask: func(ctx context.Context) []doctor.Finding {
		now := s.served.now()
		o, err := open.BusClient(now.config)
		if err != nil || now.bus.Ready(ctx) != nil {
			return nil // as another check says
		}
		x := examine.NewBusExamination(now.plan, o)
		x.Serves = true
		for _, spec := range now.plan.Specs() {
			if s.roles.has(spec.Name) {
				x.Workers = append(x.Workers, spec.Name)
			}
		}
		return x.Check(examine.WhatWorkers, x.AskWork).Ask(ctx)
	}}
}
