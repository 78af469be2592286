package app

import (
	"context"

	"belfry/pkg/app/examine"
	"belfry/pkg/app/open"
	"belfry/pkg/operations/doctor"
)

// workRightsCheck asks for the rights that the workers of this process need.
func (a *App) workRightsCheck() doctor.Check {
	return doctor.Check{Area: examine.AreaBus, Subject: examine.WhatWorkers, Ask: func(ctx context.Context) []doctor.Finding {
		now := a.now()
		o, err := open.BusClient(now.config)
		if err != nil || a.bus.Ready(ctx) != nil {
			return nil // as another check says
		}
		x := examine.NewBusExamination(now.plan, o)
		x.Serves = true
		for _, spec := range now.plan.Specs() {
			if a.has(spec.Name) {
				x.Workers = append(x.Workers, spec.Name)
			}
		}
		return x.Check(examine.WhatWorkers, x.AskWork).Ask(ctx)
	}}
}
