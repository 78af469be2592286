package app

import (
	"context"
	"slices"

	"belfry/config"
	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/listener"
)

// SetupBus creates the streams of a configuration and the consumers of its listeners and of more, so that
// other users of the bus need no permission to, and narrows other consumers (see listener.NarrowConsumers); with check it only compares. It returns what it found and
// did, up to an error.
func SetupBus(ctx context.Context, c *config.Config, b *bus.Client, more []listener.Spec, check bool) ([]bus.Diff, error) {
	p, err := compile(c)
	if err != nil {
		return nil, err
	}
	for _, m := range more {
		if slices.Contains(builtIn, m.Name) {
			return nil, errs.New(errs.Invalid, "listener %s is built in, and set up as configured; choose another name for yours", m.Name)
		}
	}
	o, err := p.busOptions()
	if err != nil {
		return nil, err
	}
	all, err := bus.SetupStreams(ctx, b, o.Events, o.Replicas, check)
	for _, spec := range append(p.specs(), more...) {
		if err != nil {
			return all, err
		}
		var found []bus.Diff
		found, err = listener.Setup(ctx, b, spec, check)
		all = append(all, found...)
	}
	if err != nil {
		return all, err
	}
	found, err := listener.NarrowConsumers(ctx, b, check)
	return append(all, notYet(all, found)...), err
}

// notYet returns the differences that are not among those that were found before.
func notYet(before, found []bus.Diff) []bus.Diff {
	return slices.DeleteFunc(found, func(d bus.Diff) bool {
		return slices.ContainsFunc(before, func(b bus.Diff) bool { return b.What == d.What })
	})
}
