package policy

import (
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// An object comes from outside and may be made to be slow: long lists, deep
// ones, strings that a pattern takes long with. Whatever a rule does with it,
// these bounds hold one evaluation to some 50 ms, or about a second when the
// rule's own regular expression is ambiguous in the extreme.
const (
	costLimit   = 1_000_000 // see costs
	patternSize = 250       // instructions of a regular expression
	checkEvery  = 100       // comprehension steps between looks at the context
)

// costs prices calls by the sizes of their operands. CEL's own prices don't
// serve: with operands of dynamic type, as ours are, it takes comparing or
// searching a list for a single step.
type costs struct{}

// CallCost implements cost.ActualCostEstimator. It is called behind the call.
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
		case overloads.Matches:
			total += stringSize(arg)
		default:
			total += stringSize(arg) / bytesPerUnit
		}
	}
	return &total
}

// zoneCost is the price of looking a time zone up, which reads a file.
const zoneCost = 500

// bytesPerUnit is how many bytes of a string cost as much as one step; a
// regular expression goes through it more slowly.
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

// deepSize is how many steps it takes to go through a value, or more than the
// limit when that is all that matters.
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
