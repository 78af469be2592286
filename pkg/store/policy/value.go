package policy

import (
	"math"
	"reflect"
	"strconv"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"belfry/pkg/store/object"
)

// record presents an object to one evaluation as a map. A field is converted on
// first access: most rules read one or two of a large object.
// It is not safe for concurrent use; an evaluation is one goroutine.
type record struct {
	object object.Object
	fields map[string]ref.Val // those that were accessed
	whole  traits.Mapper      // all of them; nil until needed
}

var _ traits.Mapper = (*record)(nil)

// recordOf is null for no object.
func recordOf(o object.Object) ref.Val {
	if o == nil {
		return types.NullValue
	}
	return &record{object: o}
}

// Find implements traits.Mapper.
func (r *record) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	if value, ok := r.fields[string(name)]; ok {
		return value, true
	}
	text, ok := r.object[string(name)]
	if !ok {
		return nil, false
	}
	if r.fields == nil {
		r.fields = make(map[string]ref.Val, 2)
	}
	value := convert(text)
	r.fields[string(name)] = value
	return value, true
}

// Get implements traits.Indexer.
func (r *record) Get(key ref.Val) ref.Val {
	if value, ok := r.Find(key); ok {
		return value
	}
	return types.NewErr("no such key: %v", key)
}

// Contains implements traits.Container.
func (r *record) Contains(key ref.Val) ref.Val {
	_, ok := r.Find(key)
	return types.Bool(ok)
}

// Size implements traits.Sizer.
func (r *record) Size() ref.Val { return types.Int(len(r.object)) }

// Type implements ref.Val.
func (r *record) Type() ref.Type { return types.MapType }

// Iterator implements traits.Iterable.
func (r *record) Iterator() traits.Iterator { return r.all().Iterator() }

// Equal implements ref.Val.
func (r *record) Equal(other ref.Val) ref.Val { return r.all().Equal(other) }

// Value implements ref.Val.
func (r *record) Value() any { return r.all().Value() }

// ConvertToNative implements ref.Val.
func (r *record) ConvertToNative(t reflect.Type) (any, error) { return r.all().ConvertToNative(t) }

// ConvertToType implements ref.Val.
func (r *record) ConvertToType(t ref.Type) ref.Val { return r.all().ConvertToType(t) }

func (r *record) all() traits.Mapper {
	if r.whole == nil {
		values := make(map[ref.Val]ref.Val, len(r.object))
		for name := range r.object {
			key := types.String(name)
			values[key], _ = r.Find(key)
		}
		r.whole = newOrdered(values)
	}
	return r.whole
}

// convert makes a CEL value of a JSON value.
func convert(text []byte) ref.Val {
	switch text[0] {
	case 'n':
		return types.NullValue
	case 't':
		return types.True
	case 'f':
		return types.False
	case '"':
		s, _ := object.Text(text)
		return types.String(s)
	case '[':
		var elements []ref.Val
		object.Elements(text, func(value []byte) bool {
			elements = append(elements, convert(value))
			return true
		})
		return types.NewRefValList(types.DefaultTypeAdapter, elements)
	case '{':
		return &nested{text: text}
	default:
		return number(string(text))
	}
}

// number is an int where that is exact, else a double: 1990.0 is 1990, and
// what is beyond a double is infinite.
func number(text string) ref.Val {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return types.Int(n)
	}
	const exact = 1 << 53
	f, _ := strconv.ParseFloat(text, 64)
	if f == math.Trunc(f) && math.Abs(f) < exact {
		return types.Int(f)
	}
	return types.Double(f)
}
