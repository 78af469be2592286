package model

import "belfry/internal/ordered"

// pageSchema is the schema of a page of a list.
func (s *Store) pageSchema() *ordered.Object {
	return ordered.Of(
		"type", "object", "description", "A page of a list.", "required", []string{"items"},
		"properties", ordered.Of(
			"items", ordered.Of("type", "array", "items", Ref(s.ObjectName())),
			"cursor", ordered.Of("type", "string", "description", "Where the next page starts; absent on the last page."),
			"before", ordered.Of("type", "string", "description", "Where the page before ends, for the parameter of that name; absent on the first page."),
			"count", Count(),
			"plan", ordered.Of("type", "object", "description", "With `explain=true`: how the page was read."),
		),
	)
}

// Count is the schema of a count.
func Count() *ordered.Object {
	return ordered.Of(
		"type", "object", "description", "How many objects match that the client may see, if that was asked for.", "required", []any{"value", "accuracy"},
		"properties", ordered.Of(
			"value", ordered.Of("type", "integer", "minimum", 0),
			"accuracy", ordered.Of("enum", []any{"exact", "atLeast", "estimate"}, "description", "atLeast: counting reached its limit, and there are at least so many."),
		),
	)
}
