package apimodel

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
			"plan", Ref("ListPlan"),
			"warning", Warning(),
		),
	)
}

// Warning is the schema of what a page says about itself in development.
func Warning() *ordered.Object {
	return ordered.Of("type", "string", "description", "With `development: true` alone: no index supports the list, and which one to declare. Elsewhere the list is refused.")
}

// Count is the schema of a count.
func Count() *ordered.Object {
	return ordered.Of(
		"type", "object", "description", "How many objects match that the client may see, if that was asked for.", "required", []any{"value", "accuracy"},
		"properties", ordered.Of(
			"value", ordered.Of("type", "integer", "minimum", 0),
			"accuracy", ordered.Of("type", "string", "enum", []any{"exact", "atLeast", "estimate"}, "description", "atLeast: counting reached its limit, and there are at least so many."),
		),
	)
}

// Plan is the schema of how a page of a list was read.
func Plan() *ordered.Object {
	text := func(description string) *ordered.Object {
		return ordered.Of("type", "string", "description", description)
	}
	texts := func(description string) *ordered.Object {
		return ordered.Of("type", "array", "items", ordered.Of("type", "string"), "description", description)
	}
	count := func(description string) *ordered.Object {
		return ordered.Of("type", "integer", "minimum", 0, "description", description)
	}
	also := ordered.Of("type", "object", "required", []any{"index", "range"}, "properties", ordered.Of(
		"index", texts("Its fields."), "range", texts("Conditions on the first ones.")))
	read := ordered.Of("type", "object", "properties", ordered.Of(
		"index", texts("The fields of the index; absent: objects were read in the order of uuids."),
		"uuid", text("The one object that was read."),
		"words", text("What was searched for in the text, instead of an index."),
		"in", text("The fields that were searched."),
		"range", texts("The range of the index, as conditions; absent: all of it."),
		"backward", ordered.Of("type", "boolean"),
		"alternative", count("Which alternative of the filter it is for, if there are several."),
		"intersected", ordered.Of("type", "array", "items", also, "description", "Of the range, only what these ranges have as well was read."),
	))
	return ordered.Of("type", "object", "description", "With `explain`: how the page was read.", "required", []any{"reads", "order", "read", "bytes", "returned"},
		"properties", ordered.Of(
			"reads", ordered.Of("type", "array", "items", read),
			"more", count("Reads that are left out, for further values that the rule allows."),
			"combined", ordered.Of("type", "string", "enum", []any{"merged", "inTurn"}, "description", "How several reads were combined."),
			"order", texts("Of the objects."),
			"checked", texts("Conditions that were evaluated on what was read."),
			"rule", ordered.Of("type", "string", "enum", []any{"forEach", "reads"}, "description", "The rule was evaluated for each object, or it determined what was read."),
			"read", count("Objects that were read for this page."),
			"bytes", count("Of these objects."),
			"keys", count("Keys of indexes that were compared for intersections."),
			"expanded", count("Objects that were read because those of the page name them."),
			"returned", count("Objects of this page."),
		))
}
