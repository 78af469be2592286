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
	last := ordered.Of("type", "string", "pattern", "^[0-9]+$")
	names := []string{string(event.StoreSaved), string(event.StoreUpdated), string(event.StoreDeleted),
		string(event.BinaryUploaded), string(event.BinaryDeleted)}
	d.get(operation{
		path: "/events", tag: eventsTag, id: "listenToEvents", summary: "Hear what happens (Server-Sent Events)",
		description: "A message each, with the event's place in the log as its id, its name as its event, and as its data a JSON object: " +
			"`id`, `event`, `time`, `store`, `uuid`, `revision`, `object` (or `objectOmitted`), of files `property`, `index` and `record`. " +
			"Of an object is told what who listens may get. `dropped` says why the stream ends, `reset` what was missed; both have a `reason`.",
		parameters: []any{
			query("store", "Only these stores; all without it.", heard(d.contract)),
			query("event", "Only these events; all without it.", names),
			ordered.Of("name", "lastEventId", "in", "query", "schema", last,
				"description", "The id of the last event that was heard, for clients that can't set the header. 0 begins with the oldest that is kept."),
			ordered.Of("name", "Last-Event-ID", "in", "header", "schema", last,
				"description", "The id of the last event that was heard: the stream goes on behind it."),
		},
		replies:  ordered.Of("200", reply("The stream, until the client goes or has to.", as("text/event-stream", ordered.Of("type", "string")), "Cache-Control")),
		problems: []int{400, 401, 429, 500, 503},
	})
}

// heard are the stores whose events are streamed.
func heard(k *model.Contract) []string {
	var all []string
	for _, s := range k.Stores {
		if s.Expose != nil && !s.Expose.Restrict.Get && len(s.Interceptors["get"]) == 0 {
			all = append(all, s.Name)
		}
	}
	slices.Sort(all)
	return all
}
