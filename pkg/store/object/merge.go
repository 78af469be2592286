package object

import (
	"encoding/json"
	"maps"

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
// an object is merged into what is there, anything else replaces it. A value
// that the patch leaves as it is keeps its text; a nested object that changes
// is encoded again, by Encode. Neither argument is modified.
//
// An object nested deeper than MaxDepth, which Parse never returns, is an
// errs.Invalid.
func MergePatch(target, patch Object) (Object, error) {
	return mergePatch(target, patch, 1)
}

// mergePatch is MergePatch at a level of the patch's nesting.
func mergePatch(target, patch Object, level int) (Object, error) {
	if level > MaxDepth {
		return nil, errs.New(errs.Invalid, "the patch is nested more than %d levels deep", MaxDepth)
	}
	merged := target.Clone()
	for name, change := range patch {
		if string(change) == "null" {
			delete(merged, name)
			continue
		}
		if !isObject(change) {
			merged[name] = change
			continue
		}
		value, err := patchNested(target[name], change, level+1)
		if err != nil {
			return nil, err
		}
		merged[name] = value
	}
	return merged, nil
}

func patchNested(value, change json.RawMessage, level int) (json.RawMessage, error) {
	patch, err := Decode(change)
	if err != nil {
		return nil, err
	}
	var target Object
	if isObject(value) {
		if target, err = Decode(value); err != nil {
			return nil, err
		}
	}
	merged, err := mergePatch(target, patch, level)
	if err != nil {
		return nil, err
	}
	if isObject(value) && merged.Equal(target) {
		return value, nil
	}
	return merged.Encode(), nil
}

func isObject(value json.RawMessage) bool { return len(value) > 0 && value[0] == '{' }
