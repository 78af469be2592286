package fill

import (
	"context"
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/walk"
)

// claimsAtOnce is how many objects are read at once for their claims: until all are done, two objects can get one
// value, or writes are refused, so a fill that ends sooner is worth more than one that nobody notices.
const claimsAtOnce = 16

// Claims returns the claims of stores with unique fields. A store trusts its claims only once every object has its own:
// until then a value without a claim may be that of an object.
func Claims(set *store.Set) Works {
	all := map[string]*work{}
	for name, s := range set.Stores() {
		if c := s.Claims(); c != nil {
			all[name] = claims(s, c)
		}
	}
	return newWorks("UNIQUE", all)
}

func claims(s *store.Store, c *store.Claims) *work {
	var names []string
	for _, fields := range c.Fields() {
		names = append(names, store.ConstraintName(fields))
	}
	slices.Sort(names)
	return &work{
		store: s, page: 500, atOnce: claimsAtOnce, kind: walk.Unique, called: "store",
		what:   "the claims of unique values of a store",
		begins: "the values of unique properties are not known: collecting them from the objects",
		// The generation is another one after a restore or a migration, which copy records without their claims.
		definition: hashOf(names, c.Generation()),
		fill: func(ctx context.Context, o store.Stored, _ func(objects int) error) error {
			found, err := c.Collect(ctx, o.UUID)
			if err == nil && len(found) > 0 {
				f := found[0]
				err = errs.New(errs.Taken,
					"%s has an equal value in %s: change one of them, then run `belfry verify --repair`", f.Other,
					strings.Join(f.Fields, ", "))
			}
			return err
		},
		refuses: c.Refuses(),
		trust: func(filled, disputed bool) {
			if c.Trust(filled); disputed {
				c.Proceed()
			}
		},
	}
}
