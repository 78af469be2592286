package openapi

import (
	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
	"belfry/pkg/event"
)

// streamed is the data of an event of a store in a stream.
func (d *document) streamed(s *apimodel.Store) *ordered.Object {
	kind := func(names []event.Name, required []string, more ...any) *ordered.Object {
		properties := ordered.Of(
			"id", ordered.Of("type", "string", "description", "The event's id: the same if it is in the log twice."),
			"event", ordered.Of("type", "string", "enum", names),
			"time", apimodel.Time("The time of the event."),
			"store", ordered.Of("type", "string", "const", s.Name),
			"uuid", apimodel.UUID("The object's uuid."),
			"revision", ordered.Of("type", "string", "description",
				"The object's revision after the event. Revisions of one object increase."),
			"objectOmitted", ordered.Of("type", "boolean", "const", true, "description",
				"The object was too large for an event: read it."),
		)
		for _, m := range ordered.Of(more...).Members() {
			properties.Set(m.Name, m.Value)
		}
		return ordered.Of("type", "object", "required",
			append([]string{"id", "event", "time", "store", "uuid", "revision"}, required...), "properties", properties)
	}
	object := ordered.Of("$ref", "#/components/schemas/"+s.ObjectName())
	kinds := []any{kind([]event.Name{event.StoreSaved, event.StoreUpdated, event.StoreDeleted}, nil, "object", object)}
	if len(s.Files) > 0 {
		kinds = append(kinds, kind([]event.Name{event.BinaryUploaded, event.BinaryDeleted},
			[]string{"property", "index", "record"}, "object", object,
			"property", ordered.Of("type", "string", "description", "The property that holds the record of the file."),
			"index", ordered.Of("type", "integer", "minimum", 0, "description",
				"Its place among the files of the property."),
			"record", apimodel.Ref(apimodel.FileRecord)))
	}
	const description = "An event of an object in the stream."
	if len(kinds) == 1 {
		only := kinds[0].(*ordered.Object)
		only.Set("description", description)
		return only
	}
	return ordered.Of("description", description, "anyOf", kinds)
}
