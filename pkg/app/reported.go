package app

import (
	"log/slog"
	"maps"
	"slices"
	"strings"

	"belfry/pkg/app/hold"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/serving"
)

// reportChanges logs which operations this release denies with the same configuration, once for a data folder of an
// earlier release.
func reportChanges(g *serving.Generation, log *slog.Logger) {
	folder := g.Config.Data
	if hold.WasReported(folder, hold.DeniedByDefault) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(g.Config.Stores)) {
		s := g.Config.Stores[name]
		if denied := plan.LeftOut(g.Config, s); len(denied) > 0 {
			log.Warn("a policy denies operations that it does not name; an earlier release allowed them to everyone: name a rule for each of these operations, or set default: allow",
				"store", name, "key", "stores."+name+".policy", "denied", strings.Join(denied, ", "))
		}
		if s.OwnersByDefault {
			log.Warn("in a store with an owner and without a policy, only owners have access, as by policy: owner; an earlier release allowed everyone everything: set policy",
				"store", name, "key", "stores."+name+".policy")
		}
	}
	if err := hold.SetReported(folder); err != nil {
		log.Warn("the operations that this release denies will be reported again at the next start", "error", err)
	}
}
