package app

import (
	"maps"
	"slices"
	"strings"

	"belfry/pkg/app/hold"
	"belfry/pkg/app/plan"
)

// reportChanges logs, once for a data folder that an earlier release has used, what this release denies with the same
// configuration.
func (a *serving) reportChanges() {
	folder := a.config.Data
	if hold.WasReported(folder, hold.DeniedByDefault) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(a.config.Stores)) {
		s := a.config.Stores[name]
		if denied := plan.LeftOut(a.config, s); len(denied) > 0 {
			a.log.Warn("a policy denies what it does not name, which an earlier release allowed everyone: name a rule for each of these operations, or set default: allow",
				"store", name, "key", "stores."+name+".policy", "denied", strings.Join(denied, ", "))
		}
		if s.OwnersByDefault {
			a.log.Warn("a store with an owner and without a policy is for its owners, as by policy: owner, where an earlier release allowed everyone everything: set policy",
				"store", name, "key", "stores."+name+".policy")
		}
	}
	if err := hold.SetReported(folder); err != nil {
		a.log.Warn("what this release denies will be said again at the next start", "error", err)
	}
}
