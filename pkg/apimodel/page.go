package apimodel

import "belfry/internal/ordered"

// pageSchema is the schema of a page of a list.
func (s *Store) pageSchema() *ordered.Object {
	return ordered.Of(
		"type", "object", "description", "A page of a list.", "required", []string{"items"},
		"properties", ordered.Of(
			"items", ordered.Of("type", "array", "items", Ref(s.ObjectName())),
			"cursor", ordered.Of("type", "string", "description",
				"The start of the next page; absent on the last page."),
			"before", ordered.Of("type", "string", "description",
				"The end of the previous page, for the parameter of that name; absent on the first page."),
			"count", Count(),
			"plan", Ref("ListPlan"),
			"warning", Warning(),
		),
	)
}

// Warning is the schema of a page's warning in development.
func Warning() *ordered.Object {
	return ordered.Of("type", "string",
		"description", "Only with `development: true`: no index supports the list, and which one to declare. Without "+
			"`development` the list is refused.")
}

// Count is the schema of a count.
func Count() *ordered.Object {
	return ordered.Of(
		"type", "object", "description",
		"The number of matching objects that the client may read, if it was requested.", "required",
		[]any{"value", "accuracy"}, "properties", ordered.Of(
			"value", ordered.Of("type", "integer", "minimum", 0),
			"accuracy", ordered.Of("type", "string", "enum", []any{"exact", "atLeast", "estimate"}, "description",
				"atLeast: counting reached its limit, and there are at least as many."),
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
		"uuid", text("The only object that was read."),
		"words", text("The words that were searched in the text, instead of an index."),
		"in", text("The fields that were searched."),
		"range", texts("The range of the index, as conditions; absent: all of it."),
		"backward", ordered.Of("type", "boolean"),
		"alternative", count("The alternative of the filter, if there are several."),
		"intersected", ordered.Of("type", "array", "items", also, "description",
			"Only objects that are also in these ranges were read."),
	))
	return ordered.Of("type", "object", "description", "With `explain`: how the page was read.", "required",
		[]any{"reads", "order", "read", "bytes", "returned"}, "properties", ordered.Of(
			"reads", ordered.Of("type", "array", "items", read),
			"more", count("The number of omitted reads, for further values that the rule allows."),
			"combined", ordered.Of("type", "string", "enum", []any{"merged", "inTurn"}, "description",
				"The way in which several reads were combined."),
			"order", texts("The order of the objects."),
			"checked", texts("Conditions that were evaluated on the objects that were read."),
			"rule", ordered.Of("type", "string", "enum", []any{"forEach", "reads"}, "description",
				"The rule was evaluated for each object, or it determined what was read."),
			"read", count("Objects that were read for this page."),
			"bytes", count("The bytes of these objects."),
			"keys", count("Keys of indexes that were compared for intersections."),
			"expanded", count("Objects that were read because objects of the page name them."),
			"returned", count("Objects of this page."),
		))
}
