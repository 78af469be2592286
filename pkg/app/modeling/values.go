package modeling

import (
	"encoding/json"
	"slices"
	"strings"

	"belfry/config/edit"
	"belfry/internal/ordered"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// encodeShown returns a value as JSON. Texts are as belfry reads them: $${ stands for ${.
func encodeShown(v edit.Value) []byte {
	data, err := json.Marshal(shownValue(v))
	if err != nil {
		return []byte("null")
	}
	return data
}

func shownValue(v edit.Value) any {
	switch v := v.(type) {
	case edit.Map:
		o := ordered.Of()
		for _, e := range v {
			o.Set(e.Key, shownValue(e.Value))
		}
		return o
	case []edit.Value:
		all := make([]any, len(v))
		for i, item := range v {
			all[i] = shownValue(item)
		}
		return all
	case edit.Plain:
		if raw := json.RawMessage(v); json.Valid(raw) {
			return raw
		}
		return unescaped(string(v))
	case string:
		return unescaped(v)
	default:
		return nil
	}
}

// unescaped reverses edit.Literal.
func unescaped(text string) string { return strings.ReplaceAll(text, "$${", "${") }

// typed returns a value that an admin has sent as JSON, as it is written into the file. It is literal, except where it
// is the value of before: that is kept as it is written.
func typed(data []byte, before edit.Value) (edit.Value, error) {
	if len(data) > maxValue {
		return nil, errs.New(errs.TooLarge, "expected at most %d bytes", maxValue)
	}
	if _, err := object.Parse(slices.Concat([]byte(`{"value":`), data, []byte{'}'})); err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "the value is not JSON")
	}
	v, err := ordered.Value(data)
	if err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "the value is not JSON")
	}
	return literal(v, before), nil
}

// maxValue is the largest value of a change in bytes.
const maxValue = 256 << 10

func literal(v any, before edit.Value) edit.Value {
	switch v := v.(type) {
	case *ordered.Object:
		was, _ := before.(edit.Map)
		m := edit.Map{}
		for _, each := range v.Members() {
			if each.Value == nil {
				continue // as if it were missing
			}
			old, _ := was.Get(each.Name)
			m = append(m, edit.Member{Key: each.Name, Value: literal(each.Value, old)})
		}
		return m
	case []any:
		was, _ := before.([]edit.Value)
		list := make([]edit.Value, 0, len(v))
		for i, item := range v {
			var old edit.Value
			if i < len(was) {
				old = was[i]
			}
			list = append(list, literal(item, old))
		}
		return list
	case string:
		if old, single := edit.Text(before); single && old == edit.Literal(v) {
			return before
		}
		return edit.Literal(v)
	case json.Number:
		return edit.Plain(v.String())
	case bool:
		if v {
			return edit.Plain("true")
		}
		return edit.Plain("false")
	default:
		return edit.Map{}
	}
}
