package policy

import (
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// Functions that computed fields have besides those of CEL.
const (
	listMax    = "max"
	listMin    = "min"
	listSum    = "sum"
	listJoin   = "join"
	lowerASCII = "lowerAscii"
	upperASCII = "upperAscii"
	trim       = "trim"
)

// computedEnvironment is created with the first computed field, as environment is. Fields are added to it for each
// expression.
var computedEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	list, text := cel.ListType(cel.DynType), cel.StringType
	onText := func(name string, change func(string) string) cel.EnvOption {
		return cel.Function(name, cel.MemberOverload(name+"_string", []*cel.Type{text}, text,
			cel.UnaryBinding(func(v ref.Val) ref.Val { return types.String(change(string(v.(types.String)))) })))
	}
	onList := func(name string, reduce func(traits.Lister) ref.Val) cel.EnvOption {
		return cel.Function(name, cel.MemberOverload(name+"_list", []*cel.Type{list}, cel.DynType,
			cel.UnaryBinding(func(v ref.Val) ref.Val { return reduce(v.(traits.Lister)) })))
	}
	return cel.NewEnv(
		cel.Variable(wholeObject, cel.MapType(cel.StringType, cel.DynType)),
		cel.CrossTypeNumericComparisons(true),
		cel.RegexProgramSizeLimit(patternSize),
		onText(lowerASCII, func(s string) string { return mapASCII(s, 'A', 'Z', 'a'-'A') }),
		onText(upperASCII, func(s string) string { return mapASCII(s, 'a', 'z', 'A'-'a') }),
		onText(trim, strings.TrimSpace),
		onList(listMax, func(l traits.Lister) ref.Val { return extreme(l, types.IntOne) }),
		onList(listMin, func(l traits.Lister) ref.Val { return extreme(l, types.IntNegOne) }),
		onList(listSum, sum),
		cel.Function(listJoin, cel.MemberOverload("join_list_string", []*cel.Type{list, text}, text,
			cel.BinaryBinding(func(l, separator ref.Val) ref.Val {
				return join(l.(traits.Lister),
					string(separator.(types.String)))
			}))),
	)
})

// mapASCII moves the letters from one to another by a distance. Unicode's case mapping changes with its versions,
// and computed fields must not.
func mapASCII(s string, from, to byte, distance int) string {
	out := []byte(s)
	for i, c := range out {
		if from <= c && c <= to {
			out[i] = byte(int(c) + distance)
		}
	}
	return string(out)
}

// extreme returns the element that compares with all others as wanted, or equal to them.
func extreme(l traits.Lister, wanted types.Int) ref.Val {
	var best ref.Val
	for it := l.Iterator(); it.HasNext() == types.True; {
		element := it.Next()
		comparer, ok := element.(traits.Comparer)
		if !ok {
			return types.MaybeNoSuchOverloadErr(element)
		}
		if best == nil {
			best = element
			continue
		}
		switch result := comparer.Compare(best); {
		case types.IsUnknownOrError(result):
			return result
		case result == wanted:
			best = element
		}
	}
	if best == nil {
		return types.NewErr("the list is empty")
	}
	return best
}

// sum adds numbers: the sum is an int if all of them are, else a double. That of no elements is 0.
func sum(l traits.Lister) ref.Val {
	ints, doubles, isDouble := ref.Val(types.IntZero), types.Double(0), false
	for it := l.Iterator(); it.HasNext() == types.True; {
		switch element := it.Next().(type) {
		case types.Int:
			ints = ints.(traits.Adder).Add(element)
			doubles += types.Double(element)
		case types.Double:
			doubles += element
			isDouble = true
		default:
			return types.MaybeNoSuchOverloadErr(element)
		}
		if types.IsError(ints) {
			return ints // overflow
		}
	}
	if isDouble {
		return doubles
	}
	return ints
}

// join concatenates texts.
func join(l traits.Lister, separator string) ref.Val {
	var out strings.Builder
	for it, first := l.Iterator(), true; it.HasNext() == types.True; first = false {
		element, ok := it.Next().(types.String)
		if !ok {
			return types.MaybeNoSuchOverloadErr(element)
		}
		if !first {
			out.WriteString(separator)
		}
		out.WriteString(string(element))
		if out.Len() > MaxComputedBytes {
			return types.WrapErr(errTooLarge)
		}
	}
	return types.String(out.String())
}
