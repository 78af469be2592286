package console

import (
	"context"
	"slices"

	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Bounds of what is read of the objects that name one which is about to be deleted.
const (
	maxNamingEach = 100 // by one reference
	maxNamingAll  = 500 // by all of them
	maxNamingSeen = 20  // that are listed
)

// namedBy are the objects that name one by a reference.
type namedBy struct {
	Store, Field string
	Objects      []named // the first
	Count        int
	More         bool // there are, or may be, more
}

// namedBy returns the objects that name one by the references with which a deletion does something: it clears them, or
// is refused. It reads them by indexes.
func (v *objectsView) namedBy(
	ctx context.Context, target, uuid, does string, read *int,
) (all []namedBy, err error) {
	for _, ref := range v.set.Referring(target, does) {
		by := namedBy{Store: ref.Source, Field: ref.Field}
		for x, err := range v.set.Store(ref.Source).Linked(ctx, ref.Field, uuid, maxNamingEach) {
			if err != nil {
				return nil, err
			}
			if *read++; by.Count == maxNamingEach || *read > maxNamingAll {
				by.More = true
				break
			}
			if target == ref.Source && x.UUID == uuid ||
				!slices.Contains(store.KeyTargets(object.Field(x.Body, ref.Field)), uuid) {
				continue // the object itself; or an index has what is no longer so
			}
			if by.Count++; len(by.Objects) < maxNamingSeen {
				by.Objects = append(by.Objects, v.names.named(ref.Source, x))
			}
		}
		if by.Count > 0 || by.More {
			all = append(all, by)
		}
	}
	return all, nil
}

// Unlisted is how many of them are counted and not listed.
func (n namedBy) Unlisted() int { return n.Count - len(n.Objects) }
