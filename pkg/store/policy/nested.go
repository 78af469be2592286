package policy

import (
	"reflect"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"belfry/pkg/store/object"
)

// nested is an object within a value. Its fields are converted when they are accessed: an
// expression over an array of copies reads one or two of each, and some count them only.
// It is not safe for concurrent use.
type nested struct {
	text  []byte        // a part of an object that was parsed, so no name occurs twice
	whole traits.Mapper // all fields; nil until needed
}

var _ traits.Mapper = (*nested)(nil)

// Find implements traits.Mapper.
func (n *nested) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	value := object.Field(n.text, string(name))
	if value == nil {
		return nil, false
	}
	return convert(value), true
}

// Get implements traits.Indexer.
func (n *nested) Get(key ref.Val) ref.Val {
	if value, ok := n.Find(key); ok {
		return value
	}
	return types.NewErr("no such key: %v", key)
}

// Contains implements traits.Container.
func (n *nested) Contains(key ref.Val) ref.Val {
	name, ok := key.(types.String)
	return types.Bool(ok && object.Field(n.text, string(name)) != nil)
}

// Size implements traits.Sizer.
func (n *nested) Size() ref.Val { return n.all().Size() }

// Type implements ref.Val.
func (n *nested) Type() ref.Type { return types.MapType }

// Iterator implements traits.Iterable.
func (n *nested) Iterator() traits.Iterator { return n.all().Iterator() }

// Equal implements ref.Val.
func (n *nested) Equal(other ref.Val) ref.Val { return n.all().Equal(other) }

// Value implements ref.Val.
func (n *nested) Value() any { return n.all().Value() }

// ConvertToNative implements ref.Val.
func (n *nested) ConvertToNative(t reflect.Type) (any, error) { return n.all().ConvertToNative(t) }

// ConvertToType implements ref.Val.
func (n *nested) ConvertToType(t ref.Type) ref.Val { return n.all().ConvertToType(t) }

func (n *nested) all() traits.Mapper {
	if n.whole == nil {
		values := map[ref.Val]ref.Val{}
		_ = object.Each(n.text, func(name string, value []byte) bool {
			values[types.String(name)] = convert(value)
			return true
		})
		n.whole = newOrdered(values)
	}
	return n.whole
}
