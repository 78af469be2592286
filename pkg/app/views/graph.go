package views

import (
	"context"
	"maps"
	"slices"

	"belfry/config"
	"belfry/listeners/mapping"
	"belfry/pkg/api/console"
	"belfry/pkg/app/messaging"
	"belfry/pkg/app/serving"
)

// consoleGraph returns the data of the view Map: the stores of the configuration and their mappings, without the
// internal ones.
func (v *Views) consoleGraph(on *serving.Generation) *console.Graph {
	g := &console.Graph{Modeled: true, Fill: v.fill, Lag: func(ctx context.Context) (map[string]uint64, error) {
		all, err := messaging.Listeners(ctx, on.Bus)
		lag := make(map[string]uint64, len(all))
		for _, l := range all {
			lag[l.Name] = l.Lag
		}
		return lag, err
	}}
	if v.Roles.Has(mapping.Name) { // other processes count the entries that they refuse
		g.Overflow = v.Overflow
	}
	for _, name := range slices.Sorted(maps.Keys(on.Config.Stores)) {
		if !config.Internal(name) {
			g.Stores = append(g.Stores, name)
		}
	}
	for _, m := range on.Plan.Mappings {
		if config.Internal(m.Source) || config.Internal(m.Target) {
			continue
		}
		g.Mappings = append(g.Mappings, m)
	}
	return g
}

// fill returns the progress of filling the arrays of a mapping.
func (v *Views) fill(source, target, array string) console.Fill {
	for _, s := range v.Filled() {
		if s.Source == source && s.Store == target && s.Array == array {
			return console.Fill{Known: true, Done: s.Filled, Repairing: s.Repairing, Waiting: s.Others, Targets: s.Done,
				Total: s.Total, Failed: s.Failed}
		}
	}
	return console.Fill{}
}
