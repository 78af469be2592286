package fill

import (
	"context"

	"belfry/pkg/mapping"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/walk"
)

// keyRule identifies the values of keys that name objects: see object.Named. Change it with that function.
const keyRule = "strings and whole numbers"

// Previous releases ignored keys that are numbers. Objects with such keys have no entries. They lack keys in the index
// by which fills, new targets and cascades find objects. So these objects are indexed first. Then the arrays of the
// targets that a number can name are filled.
//
// Filling one object at a time does not work. If the process ends after it has written an entry, and the object moves,
// nothing leads back to the target that has the entry. A fill of the target reads the entries that it has.

// keys puts objects of a store into the index of keys. Objects whose keys have no number are only read past.
func keys(s *store.Store) *work {
	return &work{
		store: s, page: 500, kind: walk.Upgrade, called: "store", what: "the indexes of keys that are whole numbers",
		begins:     "keys that are whole numbers name objects: looking for objects that were written before they did",
		definition: hashOf(keyRule),
		needs:      func(o store.Stored) bool { return s.NamesByNumber(o.Body) },
		fill: func(ctx context.Context, o store.Stored, _ func(objects int) error) error {
			return mapping.Reindex(ctx, s, o.UUID)
		},
	}
}

// numbers fills the arrays of those targets of a mapping whose uuids are whole numbers.
func numbers(source, target *store.Store, m *store.Mapping, r *mapping.Reconciler) *work {
	w := arrays(source, target, m, r)
	w.kind, w.page, w.definition, w.onEvents = walk.Upgrade, 500, hashOf(keyRule), false
	w.what, w.begins = "the arrays of objects that whole numbers name",
		"keys that are whole numbers name objects: filling the arrays of those that they name"
	w.after = keysOf(m.Source)
	w.needs = func(o store.Stored) bool { return object.IsNumber(o.UUID) }
	return w
}

func keysOf(store string) string { return "keys of " + store }
