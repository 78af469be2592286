package policy

import (
	"cmp"
	"slices"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// ordered is a map whose keys are iterated in their order. CEL's own maps have the order
// of Go's, which is random: the first element of m.map(k, k), and what an evaluation has
// cost when it reaches the limit, would differ from one time to the next.
type ordered struct {
	traits.Mapper
	keys traits.Lister // nil until needed: a loop within a loop begins to iterate often
}

func newOrdered(values map[ref.Val]ref.Val) traits.Mapper {
	return &ordered{Mapper: types.NewRefValMap(types.DefaultTypeAdapter, values)}
}

// Iterator implements traits.Iterable.
func (m *ordered) Iterator() traits.Iterator {
	if m.keys == nil {
		m.keys = types.NewRefValList(types.DefaultTypeAdapter, sortedKeys(m.Mapper))
	}
	return m.keys.Iterator()
}

func sortedKeys(m traits.Mapper) []ref.Val {
	var keys []ref.Val
	for it := m.Iterator(); it.HasNext() == types.True; {
		keys = append(keys, it.Next())
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

func compareKeys(a, b ref.Val) int {
	if c := cmp.Compare(a.Type().TypeName(), b.Type().TypeName()); c != 0 {
		return c
	}
	if comparer, ok := a.(traits.Comparer); ok {
		if c, ok := comparer.Compare(b).(types.Int); ok {
			return int(c)
		}
	}
	return 0
}
