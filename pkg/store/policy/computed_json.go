package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"belfry/pkg/object"
)

var (
	errTooLarge = fmt.Errorf("is larger than %d bytes, or has more than %d elements", MaxComputedBytes,
		MaxComputedElements)
	errNotJSON = errors.New("is not a JSON value")
)

// appendJSON appends the JSON of a value. Equal values have equal texts: names are in order.
func appendJSON(dst []byte, v ref.Val) ([]byte, error) {
	if len(dst) > MaxComputedBytes {
		return nil, errTooLarge
	}
	switch v := v.(type) {
	case types.String:
		if len(v) > MaxComputedBytes {
			return nil, errTooLarge
		}
		return appendScalar(dst, v)
	case types.Timestamp:
		return object.AppendString(dst, string(v.ConvertToType(types.StringType).(types.String))), nil
	case traits.Mapper:
		return appendMap(dst, v)
	case traits.Lister:
		return appendList(dst, v)
	default:
		return appendScalar(dst, v)
	}
}

// appendScalar appends the JSON of a value that is neither a list nor a map.
func appendScalar(dst []byte, v ref.Val) ([]byte, error) {
	switch v := v.(type) {
	case types.Null:
		return append(dst, "null"...), nil
	case types.Bool:
		return strconv.AppendBool(dst, bool(v)), nil
	case types.Int:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case types.Uint:
		return strconv.AppendUint(dst, uint64(v), 10), nil
	case types.Double:
		return appendDouble(dst, float64(v))
	case types.String:
		return object.AppendString(dst, string(v)), nil
	default:
		return nil, errNotJSON
	}
}

// appendDouble appends a number as JavaScript writes it.
func appendDouble(dst []byte, f float64) ([]byte, error) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, errNotJSON
	}
	text, err := json.Marshal(f)
	return append(dst, text...), err
}

func appendList(dst []byte, l traits.Lister) ([]byte, error) {
	if n, ok := l.Size().(types.Int); ok && n > MaxComputedElements {
		return nil, errTooLarge
	}
	dst = append(dst, '[')
	for it, first := l.Iterator(), true; it.HasNext() == types.True; first = false {
		if !first {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendJSON(dst, it.Next()); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

func appendMap(dst []byte, m traits.Mapper) ([]byte, error) {
	dst = append(dst, '{')
	for i, key := range sortedKeys(m) {
		name, ok := key.(types.String)
		if !ok {
			return nil, errNotJSON
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(object.AppendString(dst, string(name)), ':')
		var err error
		if dst, err = appendJSON(dst, m.Get(name)); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}
