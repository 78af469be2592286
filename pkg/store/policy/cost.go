package policy

import (
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// A client can craft an object that is slow to evaluate: long or deep lists,
// strings that are expensive to match. These limits bound one evaluation to about
// 50 ms, or about a second when the rule's own regular expression backtracks
// heavily.
const (
	costLimit   = 1_000_000 // see costs
	patternSize = 250       // instructions of a regular expression
	checkEvery  = 100       // comprehension steps between checks of the context
)

// costs estimates the cost of calls by the sizes of their operands. CEL's own
// estimates are unsuitable: for operands of dynamic type, as here, comparing or
// searching a list costs a single step.
type costs struct{}

// CallCost implements cost.ActualCostEstimator. CEL calls it after the call.
func (costs) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	total := uint64(1)
	if len(args) == 2 && args[0].Type() == types.TimestampType && args[1].Type() == types.StringType {
		total += zoneCost
	}
	for _, arg := range args {
		switch function {
		case operators.Equals, operators.NotEquals:
			total += deepSize(arg)
		case operators.In:
			if _, ok := arg.(traits.Lister); ok {
				total += deepSize(arg)
			}
		case listMax, listMin, listSum, listJoin:
			total += deepSize(arg)
		case overloads.Matches:
			total += stringSize(arg)
		default:
			total += stringSize(arg) / bytesPerUnit
		}
	}
	return &total
}

// zoneCost is the cost of loading a time zone, which reads a file.
const zoneCost = 500

// bytesPerUnit is how many bytes of a string cost as much as one step; matching a
// regular expression costs one step a byte.
const bytesPerUnit = 10

func stringSize(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v))
	case types.Bytes:
		return uint64(len(v))
	default:
		return 0
	}
}

// deepSize is how many steps it takes to traverse a value. It stops counting
// above costLimit.
func deepSize(v ref.Val) uint64 {
	total := 1 + stringSize(v)/bytesPerUnit
	container, ok := v.(traits.Iterable)
	if !ok {
		return total
	}
	entries, isMap := v.(traits.Mapper)
	for it := container.Iterator(); it.HasNext() == types.True && total <= costLimit; {
		element := it.Next()
		total += deepSize(element)
		if isMap {
			total += deepSize(entries.Get(element))
		}
	}
	return total
}
