package policy

import (
	"math"
	"reflect"
	"strconv"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"belfry/pkg/object"
)

// record presents an object to one evaluation as a map: a whole one, or one within a value. A field is converted when
// it is accessed: most rules read one or two of a large object, and an expression over an array of copies one or two of
// each, or none. It is not safe for concurrent use; an evaluation is one goroutine.
type record struct {
	text     []byte             // of an object within a value, in which no name occurs twice
	searched int                // how often, before it was decoded
	object   object.Object      // nil: not decoded yet
	fields   map[string]ref.Val // those that were accessed since
	whole    traits.Mapper      // all of them; nil until needed
}

var _ traits.Mapper = (*record)(nil)

// recordOf is null for no object.
func recordOf(o object.Object) ref.Val {
	if o == nil {
		return types.NullValue
	}
	return &record{object: o}
}

// maxSearches is how often the text of an object within a value is searched for a field before it is decoded. A search
// takes as long as the text, and a loop that reads the object in each round pays only for a step: see costs.
const maxSearches = 4

// field returns the text of a field, nil for none.
func (r *record) field(name string) []byte {
	if r.object == nil && r.searched < maxSearches {
		r.searched++
		return object.Field(r.text, name)
	}
	return r.decoded()[name]
}

func (r *record) decoded() object.Object {
	if r.object == nil {
		r.object, _ = object.Decode(r.text) // a part of an object that was parsed
	}
	return r.object
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
	text := r.field(string(name))
	if text == nil {
		return nil, false
	}
	value := convert(text)
	if r.object == nil {
		return value, true // it will hardly be asked for again
	}
	if r.fields == nil {
		r.fields = make(map[string]ref.Val, 2)
	}
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
	name, ok := key.(types.String)
	return types.Bool(ok && r.field(string(name)) != nil)
}

// Size implements traits.Sizer.
func (r *record) Size() ref.Val { return types.Int(len(r.decoded())) }

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
		values := make(map[ref.Val]ref.Val, len(r.decoded()))
		for name := range r.decoded() {
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
		return &record{text: text}
	default:
		return number(string(text))
	}
}

// number is an int where that is exact, else a double: 1990.0 is 1990, and
// a number beyond a double is infinite.
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
