package contract

import "belfry/pkg/ordered"

// Refs are all references in a value.
func Refs(v any) map[string]bool {
	refs := map[string]bool{}
	collect(v, refs)
	return refs
}

func collect(v any, refs map[string]bool) {
	switch v := v.(type) {
	case *ordered.Object:
		for _, m := range v.Members() {
			if ref, ok := m.Value.(string); ok && m.Name == "$ref" {
				refs[ref] = true
			}
			collect(m.Value, refs)
		}
	case []any:
		for _, item := range v {
			collect(item, refs)
		}
	}
}
