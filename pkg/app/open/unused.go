package open

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"belfry/config"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
)

// Unused are the stores of a backend that a configuration lacks. Their data is kept, and is served when the
// configuration has them again.
type Unused struct {
	Backend string
	Stores  []string // sorted
}

func (u Unused) String() string { return strings.Join(u.Stores, ", ") + " in backend " + u.Backend }

// UnusedStores returns the stores in backends that a configuration does not use. It omits backends that deny the
// request.
func UnusedStores(ctx context.Context, c *config.Config, backends map[string]driver.Backend) (all []Unused, err error) {
	for _, name := range slices.Sorted(maps.Keys(backends)) {
		stores, err := backends[name].Stores(ctx)
		if errors.Is(err, errs.Unavailable) || errors.Is(err, errs.Canceled) {
			return nil, err
		}
		stores = slices.DeleteFunc(stores, func(s string) bool {
			_, belongs := store.BelongsTo(s)
			of := c.Stores[s]
			return belongs || of != nil && of.Backend == name
		})
		if len(stores) > 0 {
			slices.Sort(stores)
			all = append(all, Unused{name, stores})
		}
	}
	return all, nil
}
