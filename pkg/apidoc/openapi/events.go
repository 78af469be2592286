package openapi

import (
	"slices"

	"belfry/pkg/apidoc/model"
	"belfry/pkg/event"
	"belfry/pkg/ordered"
)

const eventsTag = "Events"

// events adds the stream of events for browsers.
func (d *document) events() {
	d.tag(eventsTag, "What happens, as it happens.")
	query := func(name, description string, values []string) *ordered.Object {
		items := ordered.Of("type", "string")
		if len(values) > 0 {
			items.Set("enum", values)
		}
		return ordered.Of("name", name, "in", "query", "description", description, "explode", true,
			"schema", ordered.Of("type", "array", "items", items))
	}
	last := ordered.Of("type", "string", "pattern", "^[A-Za-z0-9_-]+$")
	names := []string{string(event.StoreSaved), string(event.StoreUpdated), string(event.StoreDeleted),
		string(event.BinaryUploaded), string(event.BinaryDeleted)}
	d.get(operation{
		path: "/events", tag: eventsTag, id: "listenToEvents", summary: "Receive events (Server-Sent Events)",
		description: "A message for each event: its id is opaque, its event the event's name, and its data a JSON object: " +
			"`id`, `event`, `time`, `store`, `uuid`, `revision`, `object` (or `objectOmitted`), of files `property`, `index` and `record`. " +
			"The object has the fields that the client may read. `dropped` says why the stream ends, `reset` that events were missed; both have a `reason`.",
		parameters: []any{
			query("store", "Only these stores; all without it.", streamedStores(d.contract)),
			query("event", "Only these events; all without it.", names),
			ordered.Of("name", "lastEventId", "in", "query", "schema", last,
				"description", "The id of the last received event, for clients that can't set the header. 0 starts with the oldest event in the log."),
			ordered.Of("name", "Last-Event-ID", "in", "header", "schema", last,
				"description", "The id of the last received event: the stream continues after it."),
		},
		replies:  ordered.Of("200", reply("The stream, until the client or the server ends it.", as("text/event-stream", ordered.Of("type", "string")), "Cache-Control")),
		problems: []int{400, 401, 429, 500, 503},
	})
}

// streamedStores returns the stores whose events are streamed.
func streamedStores(k *model.Contract) []string {
	var all []string
	for _, s := range k.Stores {
		if s.Expose != nil && s.Expose.Events && !s.Expose.Restrict.Get && len(s.Interceptors["get"]) == 0 {
			all = append(all, s.Name)
		}
	}
	slices.Sort(all)
	return all
}
