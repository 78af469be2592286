package policy

import (
	"maps"
	"slices"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// ordered is a map whose keys, which are all strings, are iterated in their order. CEL's own
// maps have the order of Go's, which is random: the first element of m.map(k, k), and what
// an evaluation has cost when it reaches the limit, would differ from one time to the next.
type ordered struct{ traits.Mapper }

func newOrdered(values map[ref.Val]ref.Val) traits.Mapper {
	return ordered{types.NewRefValMap(types.DefaultTypeAdapter, values)}
}

// Iterator implements traits.Iterable.
func (m ordered) Iterator() traits.Iterator {
	names := map[string]ref.Val{}
	for it := m.Mapper.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, _ := key.Value().(string)
		names[name] = key
	}
	keys := make([]ref.Val, 0, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		keys = append(keys, names[name])
	}
	return types.NewRefValList(types.DefaultTypeAdapter, keys).Iterator()
}
