package command

import (
	"context"
	"slices"

	"belfry/config"
	"belfry/pkg/app/plan"
	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/listener"
)

// SetupBus creates the streams of a configuration, and the consumers of its listeners and of further ones, so that
// other users of the bus do not need this permission. It narrows other consumers (see listener.NarrowConsumers). With
// check it only compares. It returns its findings and changes, up to an error.
func SetupBus(ctx context.Context, c *config.Config, b *bus.Client, more []listener.Spec,
	check bool) ([]bus.Diff, error) {
	p, err := plan.Compile(c)
	if err != nil {
		return nil, err
	}
	for _, m := range more {
		if slices.Contains(plan.BuiltIn, m.Name) {
			return nil, errs.New(errs.Invalid,
				"listener %s is built in, and set up as configured; choose another name for yours", m.Name)
		}
	}
	steps, err := BusSteps(p, b, more, check)
	if err != nil {
		return nil, err
	}
	var all []bus.Diff
	for _, step := range steps {
		found, err := step.Do(ctx)
		if all = append(all, notYet(all, found)...); err != nil {
			return all, err
		}
	}
	return all, nil
}

// busStep sets up a part of the bus, or compares it with the configuration.
type busStep struct {
	What string
	Do   func(ctx context.Context) ([]bus.Diff, error)
}

// BusSteps returns the parts of the setup of a bus in order. Each compares independently. To create, each needs the
// earlier ones.
func BusSteps(p *plan.Plan, b listener.Bus, more []listener.Spec, check bool) ([]busStep, error) {
	o, err := p.BusOptions()
	if err != nil {
		return nil, err
	}
	all := []busStep{{"the streams", func(ctx context.Context) ([]bus.Diff, error) {
		return bus.SetupStreams(ctx, b, o.Events, o.Replicas, check)
	}}}
	for _, spec := range append(p.Specs(), more...) {
		all = append(all,
			busStep{"the consumers of listener " + spec.Name, func(ctx context.Context) ([]bus.Diff, error) {
				return listener.Setup(ctx, b, spec, check)
			}})
	}
	return append(all, busStep{"other consumers of the log", func(ctx context.Context) ([]bus.Diff, error) {
		return listener.NarrowConsumers(ctx, b, check)
	}}), nil
}

// notYet returns the differences that were not found before.
func notYet(before, found []bus.Diff) []bus.Diff {
	return slices.DeleteFunc(found, func(d bus.Diff) bool {
		return slices.ContainsFunc(before, func(b bus.Diff) bool { return b.What == d.What })
	})
}
