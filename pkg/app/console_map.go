package app

import (
	"context"
	"maps"
	"slices"
	"sync"

	"belfry/config"
	"belfry/listeners/mapping"
	"belfry/pkg/api/console"
)

// overflow counts what this process has not added to mapped arrays, by mapping.
type overflow struct {
	mu    sync.Mutex
	count map[[3]string]uint64
}

func (o *overflow) add(source, target, array string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count == nil {
		o.count = map[[3]string]uint64{}
	}
	o.count[[3]string{source, target, array}]++
}

func (o *overflow) of(source, target, array string) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count[[3]string{source, target, array}]
}

// consoleGraph returns what the view Map needs: the stores of the configuration and their mappings, without the
// internal ones.
func (a *serving) consoleGraph() *console.Graph {
	g := &console.Graph{Fill: a.consoleFill(), Lag: func(ctx context.Context) (map[string]uint64, error) {
		all, err := a.listeners(ctx)
		lag := make(map[string]uint64, len(all))
		for _, l := range all {
			lag[l.Name] = l.Lag
		}
		return lag, err
	}}
	if a.has(mapping.Name) { // other processes count what they leave out
		g.Overflow = a.overflow.of
	}
	for _, name := range slices.Sorted(maps.Keys(a.config.Stores)) {
		if !config.Internal(name) {
			g.Stores = append(g.Stores, name)
		}
	}
	for _, m := range a.plan.Mappings {
		if config.Internal(m.Source) || config.Internal(m.Target) {
			continue
		}
		g.Mappings = append(g.Mappings, console.GraphMapping{
			Source: m.Source, Target: m.Target, Key: m.Key, Array: m.Array, Fields: m.Fields, Cascade: m.Cascade, Condition: m.When != nil,
		})
	}
	return g
}
