package asyncapi

import (
	"strings"

	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
	"belfry/pkg/event"
	"belfry/pkg/op"
)

// kind is an event of a store.
type kind struct {
	event   event.Name
	suffix  string // of the message's name
	summary string
	durable bool
	object  bool // it has the object
	former  bool // and former values
}

func storeKinds() []kind {
	return []kind{
		{event.StoreSaved, "Saved", "An object was created.", true, true, false},
		{event.StoreUpdated, "Updated", "An object was changed.", true, true, true},
		{event.StoreDeleted, "Deleted", "An object was deleted: its last state.", true, true, true},
		{event.StoreSave, "Save", "An object is about to be created.", false, true, false},
		{event.StoreUpdate, "Update", "An object is about to be changed.", false, true, true},
		{event.StoreDelete, "Delete", "An object is about to be deleted.", false, true, true},
		{event.StoreGet, "Get", "An object was read.", false, true, false},
	}
}

// events adds the messages of a store and their subjects in the log.
func (d *document) events(s *apimodel.Store) {
	for _, k := range storeKinds() {
		d.event(s, k, nil)
	}
	if d.holdsFiles(s) {
		file := ordered.Of("property", op.Text("The property that holds the file's record."),
			"index", ordered.Of("type", "integer", "minimum", 0, "description",
				"Its place among the files of the property."),
			"record", apimodel.Ref(apimodel.FileRecord))
		d.event(s, kind{event: event.BinaryUploaded, suffix: "FileUploaded", summary: "A file was added, or replaced.",
			durable: true}, file,
			"previous", op.Payload("The record that was replaced.", 1, "record", apimodel.Ref(apimodel.FileRecord)))
		d.event(s, kind{event: event.BinaryDeleted, suffix: "FileDeleted", summary: "A file was deleted.",
			durable: true}, file)
	}
	if s == d.contract.Login.Users {
		d.event(s, kind{event: event.Register, suffix: "Register", summary: "A user registered.", durable: true},
			ordered.Of("user", apimodel.Ref(s.ObjectName()),
				"datas", ordered.Of("type", "object", "description",
					"The form without password and token, or the provider's profile.")))
		d.security(s)
	}
}

// holdsFiles reports whether objects of a store may have files.
func (d *document) holdsFiles(s *apimodel.Store) bool {
	for _, f := range d.contract.Files {
		for _, name := range f.Stores {
			if name == s.Name && (f.Places == nil || len(f.Places[name]) > 0) {
				return true
			}
		}
	}
	return false
}

// event adds one message and its subject in the log, with the required fields.
func (d *document) event(s *apimodel.Store, k kind, needed *ordered.Object, optional ...any) {
	name := s.ID + k.suffix
	d.message(name, ordered.Of(
		"title", string(k.event)+" of "+s.Name, "summary", k.summary,
		"headers", headers(),
		"payload", envelope(s, k, needed, optional...),
	))
	if !k.event.OnlyByName() { // the others are only in the log
		live, _ := d.plain.Get(string(k.event)).([]string)
		d.plain.Set(string(k.event), append(live, name))
	}
	if !k.durable {
		return
	}
	channel := "log" + name
	d.channel(channel, "events.{partition}."+string(k.event)+"."+s.Name+".{uuid}", "In the log: "+lowerFirst(k.summary),
		ordered.Of(
			"partition", ordered.Of("description",
				"0 to 31, from the uuid (FNV-1a, 32 bits, modulo 32): events of one object are in one partition."),
			"uuid", ordered.Of("description", "The object's uuid, with %2E for each dot."),
		), name)
	d.operation("log"+name, "send", channel, k.summary, "", nil)
}

// lowerFirst returns the text with its first letter in lower case.
func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// headers are the headers of an event.
func headers() *ordered.Object {
	return op.Payload("", 0, "Nats-Msg-Id", op.Text("In the log, the event's id: the same when it is delivered again."))
}

// envelope is the schema of an event; see docs/reference/events.md.
func envelope(s *apimodel.Store, k kind, needed *ordered.Object, optional ...any) *ordered.Object {
	properties := ordered.Of(
		"id", op.Text("Unique; the same when the event is delivered again."),
		"event", ordered.Of("type", "string", "const", string(k.event)),
		"time", apimodel.Time("The time of the event, in UTC."),
		"store", ordered.Of("type", "string", "const", s.Name),
		"uuid", apimodel.UUID("The object's uuid."),
		"revision", ordered.Of("type", "string", "pattern", "^[0-9]+$", "description", revision(k)),
		"actor", ordered.Of("type", []any{"string", "null"}, "description", "The uuid of the user who acted."),
		"origin", op.Text("The interface or worker of the write: http, bus, go, mapping, cascade, auth, mail, "+
			"sweep, command."),
		"ctx", apimodel.Ref("Context"),
	)
	required := []any{}
	for _, m := range properties.Members() {
		required = append(required, m.Name)
	}
	for _, m := range needed.Members() {
		required = append(required, m.Name)
		properties.Set(m.Name, m.Value)
	}
	if k.object {
		properties.Set("object", apimodel.Ref(s.ObjectName()))
		properties.Set("objectOmitted", ordered.Of("type", "boolean", "const", true, "description",
			"The object is large: get it from the store."))
		properties.Set("binaries", ordered.Of("type", "object", "description",
			"The properties of the object that hold files, and the services of the files.",
			"additionalProperties", ordered.Of("type", "string")))
	}
	if k.former {
		properties.Set("previous", apimodel.Ref(s.FormerName()))
		properties.Set("previousOmitted", ordered.Of("type", "boolean", "const", true, "description",
			"Former values were left out: the largest, or those of an array in arrays."))
		properties.Set("arrays", ordered.Of("type", "object", "description",
			"The entries of a large array that a worker has changed, instead of the object.",
			"additionalProperties", ordered.Of("type", "object", "properties", ordered.Of(
				"set", ordered.Of("type", "array", "description", "Entries that are new or have other values.",
					"items", ordered.Of("type", "object")),
				"removed", op.Texts("The uuids of entries that were removed.")))))
		properties.Set("added", op.Texts("The names of the properties that the object did not have before."))
	}
	for i := 0; i < len(optional); i += 2 {
		properties.Set(optional[i].(string), optional[i+1])
	}
	return ordered.Of("type", "object", "required", required, "properties", properties)
}

func revision(k kind) string {
	if k.durable {
		return "The object's revision after the operation; over HTTP its ETag, or the beginning of it."
	}
	return "The object's revision before the operation, 0 for a new one."
}

// live adds the subjects of the live events.
func (d *document) live() {
	for _, m := range d.plain.Members() {
		channel := strings.ReplaceAll(m.Name, ".", "")
		d.channel("live"+channel, m.Name, "Live, for connected subscribers.", nil, m.Value.([]string)...)
		d.operation("live"+channel, "send", "live"+channel, m.Name+" of any store, in real time.", "", nil)
	}
}

// deadLetters adds the subjects of the dead letters.
func (d *document) deadLetters() {
	d.message("DeadLetter", ordered.Of(
		"title", "An event that a listener could not handle",
		"headers", op.Payload("", 6,
			"Belfry-Reason", op.Text("The last error."), "Belfry-Listener",
			op.Text("The listener that could not handle it."),
			"Belfry-Attempts", op.Text("The number of attempts."), "Belfry-Subject", op.Text("Its subject in the log."),
			"Belfry-Sequence", op.Text("Its sequence in the log."), "Belfry-Time",
			op.Text("The time at which it was dead-lettered (RFC 3339)."),
			"Belfry-Retries", op.Text("The number of earlier retries from the dead letters."),
			"Belfry-Omitted", op.Text("\"true\": the event was too large for a letter; the log has it.")),
		"payload", ordered.Of("type", "object", "description", "The original event."),
	))
	d.channel("deadLetters", "dead.{listener}", "Kept in the JetStream stream DEAD.",
		ordered.Of("listener", ordered.Of("description", "The listener's name.")), "DeadLetter")
	d.operation("buryDeadLetter", "send", "deadLetters", "A listener dead-letters an event.", "", nil)
}
