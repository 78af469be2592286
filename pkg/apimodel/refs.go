package apimodel

import (
	"strings"

	"belfry/internal/ordered"
)

// Reachable returns the components that a document references, directly or through
// other components, by kind and name. Their references begin with prefix.
func Reachable(all *ordered.Object, prefix string, from ...any) *ordered.Object {
	seen := map[string]bool{}
	var follow func(v any)
	follow = func(v any) {
		switch v := v.(type) {
		case *ordered.Object:
			for _, m := range v.Members() {
				if ref, ok := m.Value.(string); ok && m.Name == "$ref" && !seen[ref] {
					seen[ref] = true
					kind, name, _ := strings.Cut(strings.TrimPrefix(ref, prefix), "/")
					follow(all.Object(kind).Get(name))
				}
				follow(m.Value)
			}
		case []any:
			for _, item := range v {
				follow(item)
			}
		}
	}
	for _, v := range from {
		follow(v)
	}
	kept := &ordered.Object{}
	for _, kind := range all.Members() {
		used := &ordered.Object{}
		for _, m := range kind.Value.(*ordered.Object).Members() {
			if seen[prefix+kind.Name+"/"+m.Name] {
				used.Set(m.Name, m.Value)
			}
		}
		if used.Len() > 0 {
			kept.Set(kind.Name, used)
		}
	}
	return kept
}
