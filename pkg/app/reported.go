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

// reportChanges logs, once for a data folder that an earlier release has used, what this release denies with the same
// configuration.
func reportChanges(g *serving.Generation, log *slog.Logger) {
	folder := g.Config.Data
	if hold.WasReported(folder, hold.DeniedByDefault) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(g.Config.Stores)) {
		s := g.Config.Stores[name]
		if denied := plan.LeftOut(g.Config, s); len(denied) > 0 {
			log.Warn("a policy denies what it does not name, which an earlier release allowed everyone: name a rule for each of these operations, or set default: allow",
				"store", name, "key", "stores."+name+".policy", "denied", strings.Join(denied, ", "))
		}
		if s.OwnersByDefault {
			log.Warn("a store with an owner and without a policy is for its owners, as by policy: owner, where an earlier release allowed everyone everything: set policy",
				"store", name, "key", "stores."+name+".policy")
		}
	}
	if err := hold.SetReported(folder); err != nil {
		log.Warn("what this release denies will be said again at the next start", "error", err)
	}
}
