package events

import (
	"slices"

	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
	"belfry/pkg/event"
	"belfry/pkg/httpkit"
	"belfry/pkg/op"
)

// Operations adds the stream of events for browsers, if there is one.
func Operations(set *op.Set, h *Handler) {
	if !set.Contract.Events {
		return
	}
	set.Component("StreamNotice", streamNotice())
	set.Component("StreamSecurityEvent", securityEvent())
	set.Component("StreamLeft", streamLeft())
	set.Tag("Events", "Events in real time.")
	query := func(name, description string, values []string) *ordered.Object {
		items := op.Text("")
		if len(values) > 0 {
			items.Set("enum", values)
		}
		return ordered.Of("name", name, "in", "query", "description", description, "explode", true,
			"schema", ordered.Of("type", "array", "items", items))
	}
	last := ordered.Of("type", "string", "pattern", "^[A-Za-z0-9_-]+$")
	names := []string{string(event.StoreSaved), string(event.StoreUpdated), string(event.StoreDeleted),
		string(event.BinaryUploaded), string(event.BinaryDeleted), string(event.AuthPattern)}
	for _, name := range event.Auth() {
		names = append(names, string(name))
	}
	set.Get(op.Operation{
		Path: path, ID: "listenToEvents", Summary: "Receive events (Server-Sent Events)",
		Description: "A message for each event: its id is opaque, its event the event's name, and its data a " +
			"JSON object: " +
			"`id`, `event`, `time`, `store`, `uuid`, `revision`, `object` (or `objectOmitted`), of files `property`, " +
			"`index` and `record`. " +
			"The object has the fields that the client may read. `left`, with `store`, `uuid` and `revision`, says " +
			"that an object no longer meets `filter`, or that the client may no longer get it; only with `uuid` or " +
			"`filter`. Events `Auth.*` have `actor`, `origin`, `auth` and " +
			"`ctx` and no object. `dropped` says why the stream ends, `reset` why to read the objects again; both " +
			"have a `reason`.",
		Parameters: []any{
			query("store", "Only these stores; all without it.", streamedStores(set.Contract)),
			query("event", "Only these events; all but `Auth.*` without it. Events `Auth.*` are about the security "+
				"of accounts, and only users that `authentication.audit` names receive them.", names),
			query("uuid", "Only events of these objects, at most 100.", nil),
			ordered.Of("name", "filter", "in", "query", "schema", op.Text(""), "description",
				"Only objects that meet this filter, as in a list. `store` names their store, and no other. It needs "+
					"no index."),
			ordered.Of("name", "fields", "in", "query", "schema", op.Text(""), "description",
				"Only these fields of objects, separated by commas, and the uuid, as in a list."),
			ordered.Of("name", "lastEventId", "in", "query", "schema", last,
				"description", "The id of the last received event, for clients that can't set the header. 0 starts "+
					"with the oldest event in the log."),
			ordered.Of("name", "Last-Event-ID", "in", "header", "schema", last,
				"description", "The id of the last received event: the stream continues after it."),
		},
		Replies: ordered.Of("200", op.Reply("The stream, until the client or the server ends it.",
			eventStream(set.Contract), "Cache-Control", "X-Accel-Buffering")),
		Problems: []int{400, 401, 403, 429},
		Limit:    httpkit.Read, Run: h.serve,
	})
}

// streamedStores returns the stores whose events are streamed.
func streamedStores(k *apimodel.Contract) []string {
	var all []string
	for _, s := range k.Stores {
		if s.Expose != nil && s.Expose.Events && !s.Expose.Restrict.Get && len(s.Interceptors["get"]) == 0 {
			all = append(all, s.Name)
		}
	}
	slices.Sort(all)
	return all
}

// eventStream is the content of a stream. OpenAPI 3.1 can't say what the messages of a stream are.
// contentSchema, which validators ignore, refers to their data, so that generators make types of it.
func eventStream(k *apimodel.Contract) *ordered.Object {
	var all []any
	for _, name := range streamedStores(k) {
		all = append(all, apimodel.Ref(k.Store(name).EventName()))
	}
	all = append(all, apimodel.Ref("StreamSecurityEvent"), apimodel.Ref("StreamLeft"), apimodel.Ref("StreamNotice"))
	return op.Content("text/event-stream",
		ordered.Of("type", "string", "description", "contentSchema is the schema of the data of each message.",
			"contentMediaType", "text/event-stream", "contentSchema", ordered.Of("anyOf", all)))
}

// streamNotice is the data of a message about the stream itself.
func streamNotice() *ordered.Object {
	return op.Object("The data of `dropped`, which says why the stream ends, and of `reset`, which says why to read "+
		"the objects again: events were missed, or rights have changed.", 1, "reason", op.Text(""))
}

// streamLeft is the data of a message about an object that a stream no longer has.
func streamLeft() *ordered.Object {
	return op.Object("The data of `left`: an object that no longer meets the filter of the stream, or that the client "+
		"may no longer get. It may be one that the client never had.", 3,
		"store", op.Text("The name of the store."),
		"uuid", apimodel.UUID("The object's uuid."),
		"revision", op.Text("The object's revision after the write: ignore the message if you have a later one."))
}

// securityEvent is the data of an event about the security of an account.
func securityEvent() *ordered.Object {
	return op.Object("An event about the security of an account, for the users that `authentication.audit` names.", 8,
		"id", op.Text("The event's id: the same if it is in the log twice."),
		"event", op.OneOf(event.Auth(), ""),
		"time", apimodel.Time("The time of the event."),
		"store", op.Text("The name of the user store."),
		"uuid", apimodel.UUID("The user's uuid."),
		"revision", op.Text("The user's revision."),
		"actor", ordered.Of("type", []string{"string", "null"}, "description",
			"The uuid of the logged-in user who caused the event; null without one."),
		"origin", op.Text("The interface that was used, such as `http`."),
		"ctx", op.Object("The request that caused the event.", 0, "request", op.Text("Its id."), "address",
			op.Text("The network address of the client."), "userAgent", op.Text("The User-Agent header.")),
		"auth", op.Object("Details.", 0,
			"method", op.Text("The method: password, passkey, totp, recovery, email, link, or the name of a provider."),
			"factor", op.Text("The type of the factor, the uuid of the ident or the id of the key that the event "+
				"is about."),
			"session", op.Text("The id of the session."), "aal",
			ordered.Of("type", "integer", "minimum", 1, "maximum", 2),
			"reason", op.Text("The reason, in a word."), "due", apimodel.Time("The time of the planned action.")))
}
