package object

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"belfry/pkg/errs"
)

// Merge returns a copy of o in which each field of patch replaces the one of
// its name. A field that is null in patch is null in the result.
func (o Object) Merge(patch Object) Object {
	merged := make(Object, len(o)+len(patch))
	maps.Copy(merged, o)
	maps.Copy(merged, patch)
	return merged
}

// MergePatch returns target changed by an RFC 7396 merge patch: null removes,
// an object is merged into the present value, anything else replaces it. A value
// that the patch leaves as it is keeps its text; a nested object that changes
// is encoded again, by Encode. Neither argument is modified.
//
// An object nested deeper than MaxDepth, which Parse never returns, is an
// errs.Invalid.
func MergePatch(target, patch Object) (Object, error) {
	merged := target.Clone()
	for name, change := range patch {
		switch {
		case string(change) == "null":
			delete(merged, name)
		case isObject(change):
			text, _, err := appendPatched(nil, target[name], change, 2)
			if err != nil {
				return nil, err
			}
			merged[name] = text
		default:
			merged[name] = change
		}
	}
	return merged, nil
}

// appendPatched appends value changed by a patch, an object at a level of the nesting, and returns whether the result
// differs. The objects in it are appended to the same text: with one of their own for each level, a patch that is
// nested deeply would be copied as often.
func appendPatched(text []byte, value, change json.RawMessage, level int) (_ []byte, differs bool, err error) {
	if level > MaxDepth {
		return nil, false, errs.New(errs.Invalid, "the patch is nested more than %d levels deep", MaxDepth)
	}
	patch, err := Decode(change)
	if err != nil {
		return nil, false, err
	}
	var target Object
	if differs = !isObject(value); !differs {
		if target, err = Decode(value); err != nil {
			return nil, false, err
		}
	}
	start := len(text)
	text = append(text, '{')
	for _, name := range mergedNames(target, patch) {
		before, had := target[name]
		to, changes := patch[name]
		if changes && string(to) == "null" {
			differs = differs || had
			continue
		}
		if len(text) > start+1 {
			text = append(text, ',')
		}
		text = append(AppendString(text, name), ':')
		switch {
		case !changes:
			text = append(text, before...)
		case isObject(to):
			var inner bool
			if text, inner, err = appendPatched(text, before, to, level+1); err != nil {
				return nil, false, err
			}
			differs = differs || inner
		default:
			differs = differs || !bytes.Equal(before, to)
			text = append(text, to...)
		}
	}
	if !differs {
		return append(text[:start], value...), false, nil
	}
	return append(text, '}'), true, nil
}

// mergedNames returns the names of two objects in the order of Encode.
func mergedNames(a, b Object) []string {
	names := make([]string, 0, max(len(a), len(b)))
	for name := range a {
		names = append(names, name)
	}
	for name := range b {
		if _, both := a[name]; !both {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, compareNames)
	return names
}

func isObject(value json.RawMessage) bool { return len(value) > 0 && value[0] == '{' }
