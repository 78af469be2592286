package control

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"belfry/internal/count"
	"belfry/internal/memory"
	"belfry/pkg/app/command"
	"belfry/pkg/app/examine"
	"belfry/pkg/app/health"
	"belfry/pkg/app/open"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/probe"
	"belfry/pkg/app/roster"
	"belfry/pkg/app/serving"
	"belfry/pkg/operations/doctor"
)

// examineTimeout is for how long the serving process examines itself.
const examineTimeout = 10 * time.Second

// Self has the findings of a serving process about itself.
type Self struct {
	Served   *serving.Current
	Roles    serving.Roles
	Health   *health.Health
	List     *roster.List
	Began    time.Time
	Removed  func() []string // mappings whose copies objects keep
	Waits    func() error    // the reason for which the start waits; nil once requests are served
	Outdated func(ctx context.Context) []doctor.Finding
	Memory   func(g *serving.Generation) []memory.Holder
}

// examine returns what only this process knows.
func (s *Self) examine(ctx context.Context) (*command.Examined, error) {
	if err := s.Waits(); err != nil {
		return nil, err
	}
	checks := []doctor.Check{
		{Area: examine.AreaProcess, Ask: s.askSelf},
		{Area: examine.AreaProcess, Subject: "parts", Ask: s.askParts},
		{Area: examine.AreaProcess, Subject: "memory", Ask: s.askMemory},
		{Area: examine.AreaConfig, Ask: s.Outdated},
		{Area: examine.AreaVersion, Ask: s.List.Ask},
	}
	now := s.Served.Now()
	if len(now.Config.Bus.URL) == 0 {
		x := &examine.BusExamination{Plan: now.Plan, User: "of this process", Own: true, Now: time.Now,
			Connect: func() (examine.AskedBus, func(), error) {
				return now.Bus, func() {}, now.Bus.Ready(ctx)
			}}
		checks = append(checks, doctor.Check{Area: examine.AreaBus, Subject: "embedded", Ask: x.Ask})
	} else {
		checks = append(checks, s.workRightsCheck())
	}
	r := doctor.Run(ctx, checks, examineTimeout)
	r.Redact(now.Config.Secrets())
	return &command.Examined{Version: plan.Version(), Findings: r.Findings}, nil
}

// askSelf reports whether the process is ready, and problems that operators should know about even if it is.
func (s *Self) askSelf(ctx context.Context) []doctor.Finding {
	var all []doctor.Finding
	if _, err := s.Health.Ready(ctx); err != nil {
		all = append(all, doctor.Finding{Level: doctor.Problem, Name: "process.notReady",
			Says: "/readyz is 503: " + examine.MessageOf(err),
			Do:   "see the other findings: a process is not ready because one of its parts is not"})
	} else {
		all = append(all, doctor.Finding{Level: doctor.OK,
			Name: "process.ready", Says: fmt.Sprintf("version %s, process %d, since %s, roles %s", plan.Version(),
				os.Getpid(), s.Began.UTC().Format(time.RFC3339), strings.Join(s.Roles.Names(), ", "))})
	}
	for _, says := range s.Health.Shortcomings() {
		all = append(all, doctor.Finding{Level: doctor.Warning, Name: "process.degraded", Says: says,
			Do: "see belfry's log; docs/guides/monitor.md lists the conditions"})
	}
	if o := s.Served.Now().Relay.Stats(); o.Events > 0 && o.Unavailable {
		all = append(all, doctor.Finding{Level: doctor.Problem, Name: "process.outbox",
			Says: count.Of(o.Events, "event") + " can't be published, and no listener has them yet",
			Do:   "see the findings about the bus; the events are published when it accepts them"})
	}
	ctx, cancel := context.WithTimeout(ctx, probe.Timeout)
	defer cancel()
	if unused, err := open.UnusedStores(ctx, s.Served.Now().Config, s.Served.Now().Backends); err == nil {
		all = append(all, examine.UnusedFindings(unused)...)
	}
	for _, mapping := range s.Removed() {
		all = append(all, doctor.Finding{Level: doctor.OK, Name: "mapping.unused", Subject: mapping,
			Says: "the configuration no longer has this mapping, and objects keep its copies as they are",
			Do:   "add the mapping again to update its copies, or remove the property from the objects"})
	}
	return all
}

// askParts reports which parts do not work, as /readyz does.
func (s *Self) askParts(ctx context.Context) []doctor.Finding {
	var all []doctor.Finding
	states := s.Health.States(ctx)
	for _, state := range states {
		if err := state.Err; err != nil {
			all = append(all, doctor.Finding{Level: doctor.Problem, Name: "process.part", Subject: state.Of.Title(),
				Says: examine.MessageOf(err),
				Do:   "belfry's log has the time of the failure; belfry uses the part again once it works"})
		}
	}
	if len(all) == 0 {
		all = append(all, doctor.Finding{Level: doctor.OK, Name: "process.parts",
			Says: "the " + count.Of(len(states), "part") + " that it depends on work"})
	}
	return all
}

// askMemory says who holds the memory of the process.
func (s *Self) askMemory(context.Context) []doctor.Finding {
	budget := memory.Of()
	all := []doctor.Finding{{Level: doctor.OK, Name: "process.memory",
		Says: fmt.Sprintf("of %s that it may use, objects and what the runtime needs are to take %s",
			count.Bytes(int64(budget.Process)), count.Bytes(int64(budget.Heap)))}}
	for _, h := range s.Memory(s.Served.Now()) {
		says := count.Bytes(h.Held) + ": " + h.Says
		if h.Most > 0 {
			says = count.Bytes(h.Held) + " of at most " + count.Bytes(h.Most) + ": " + h.Says
		}
		all = append(all, doctor.Finding{Level: doctor.OK, Name: "process.memory", Subject: h.Part, Says: says})
	}
	return all
}

// workRightsCheck checks the permissions that the workers of this process need.
func (s *Self) workRightsCheck() doctor.Check {
	return doctor.Check{Area: examine.AreaBus, Subject: examine.WhatWorkers,
		Ask: func(ctx context.Context) []doctor.Finding {
			now := s.Served.Now()
			o, err := open.BusClient(now.Config)
			if err != nil || now.Bus.Ready(ctx) != nil {
				return nil // as another check reports
			}
			x := examine.NewBusExamination(now.Plan, o)
			x.Serves = true
			for _, spec := range now.Plan.Specs() {
				if s.Roles.Has(spec.Name) {
					x.Workers = append(x.Workers, spec.Name)
				}
			}
			return x.Check(examine.WhatWorkers, x.AskWork).Ask(ctx)
		}}
}
