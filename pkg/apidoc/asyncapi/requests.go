package asyncapi

import (
	"strings"

	"github.com/nats-io/nats.go/micro"

	"belfry/internal/ordered"
	"belfry/pkg/apidoc/model"
	"belfry/pkg/wire"
)

// requests adds the requests to a store.
func (d *document) requests(s *model.Store) {
	if !s.Bus {
		return
	}
	uuid := model.UUID("The object's uuid.")
	at := ordered.Of("description", "Act only while the object is at this revision; else 412. A number as in replies, or its digits as in events.", "oneOf", []any{
		ordered.Of("type", "integer", "minimum", 1), ordered.Of("type", "string", "pattern", "^[1-9][0-9]{0,19}$"),
	})
	stored := func(schema *ordered.Object) *ordered.Object {
		return object("The object as it is now.", 1,
			"revision", ordered.Of("type", "integer", "minimum", 1, "description", "The object's revision."),
			"object", schema,
			"objectOmitted", ordered.Of("type", "boolean", "const", true, "description", "The object was too large for a message."))
	}
	written := stored(s.Written(len(s.Interceptors["get"]) > 0)) // the policy does not apply on the bus
	gone := ordered.Of("type", "object", "description", "It was deleted.", "additionalProperties", false)

	for _, o := range []struct {
		op, verb, summary string
		request, reply    *ordered.Object
	}{
		{wire.Save, "save", "Create an object.", object("", 1, "object", model.Ref(s.InputName()),
			"uuid", model.UUID("The new object's uuid; without it that in the object, or one that is made.")), written},
		{wire.Update, "update", "Replace fields of an object.", object("", 1, "object", model.Ref(s.UpdateName()),
			"uuid", model.UUID("The object's uuid, unless it is in the object."), "revision", at), written},
		{wire.Delete, "delete", "Delete an object.", object("", 1, "uuid", uuid, "revision", at), gone},
		{wire.Exists, "exists", "Ask whether there is an object.", object("", 1, "uuid", uuid),
			object("", 1, "exists", ordered.Of("type", "boolean"))},
		{wire.Get, "get", "Read an object.", object("", 1, "uuid", uuid, "fields", text(fieldsText)), stored(model.Ref(s.ObjectName()))},
		{wire.List, "list", "List objects.", object("", 0,
			"q", text("The words to find, as over HTTP."), "filter", text("As over HTTP."), "sort", text("As over HTTP."),
			"limit", ordered.Of("type", "integer", "minimum", 1, "maximum", 500, "description", "Objects a page; 50 without it."),
			"cursor", text("Where to continue: that of the previous page."), "fields", text(fieldsText),
			"before", text("Go back: that of the page that follows, instead of cursor."),
			"count", ordered.Of("type", "string", "enum", []any{"exact", "estimate"}, "description", "Count the objects that match."),
			"explain", ordered.Of("type", "boolean", "description", "Return how the page was read.")),
			object("A page.", 1, "objects", ordered.Of("type", "array", "items", model.Ref(s.ObjectName())),
				"cursor", text("Where the next page starts; absent on the last page."),
				"before", text("Where the page before ends; absent on the first page."),
				"count", model.Count(), "plan", model.Ref("ListPlan"), "warning", model.Warning())},
	} {
		name := o.verb + s.ID
		o.request.Set("additionalProperties", false)
		request := ordered.Of("summary", o.summary, "headers", requestHeaders(wire.IsWrite(o.op)), "payload", o.request)
		if unique := s.Uniqueness(); unique != "" && (o.op == wire.Save || o.op == wire.Update) {
			request.Set("description", strings.TrimSpace(unique))
		}
		d.message(name+"Request", request)
		d.message(name+"Reply", ordered.Of("summary", "It was done.", "payload", o.reply))
		d.fault()
		d.channel(name, wire.Subject(s.Name, o.op), o.summary, nil, name+"Request")
		d.channel(name+"Reply", nil, "The inbox of the requester.", nil, name+"Reply", "Fault")
		d.operation(name, "receive", name, o.summary, name+"Reply",
			ordered.Of("nats", ordered.Of("queue", micro.DefaultQueueGroup, "bindingVersion", "0.1.0")))
	}
}

// fieldsText describes a projection.
const fieldsText = "The fields to return, as title,address.city; without it all. The uuid is always there, and what is left out is absent, also where the schema requires it."

// requestHeaders are the headers of a request.
func requestHeaders(writes bool) *ordered.Object {
	h := object("", 0,
		wire.HeaderActor, text("The uuid of a user, for the event's actor alone."),
		wire.HeaderTrace, text("A traceparent (W3C)."), wire.HeaderID, text("The request's id."))
	if writes {
		h.Object("properties").Set(wire.HeaderKey, ordered.Of("type", "string", "minLength", 1, "maxLength", wire.MaxKey, "pattern", "^[ -~]+$",
			"description", "A repeated request with this key has one effect and the same reply."))
	}
	return h
}

// fault adds the reply to a failed request.
func (d *document) fault() {
	d.message("Fault", ordered.Of(
		"title", "A problem",
		"headers", object("", 2,
			"Nats-Service-Error-Code", ordered.Of("type", "string", "pattern", "^[45][0-9][0-9]$", "description", "The status, as over HTTP."),
			"Nats-Service-Error", text("This occurrence of the problem."),
			wire.HeaderRetryAfter, text("The seconds to wait before a retry.")),
		"payload", model.Ref("Problem"),
	))
}

// interceptors adds the requests that belfry sends to interceptors.
func (d *document) interceptors(s *model.Store) {
	for _, op := range []string{"save", "update", "delete", "get", "register"} {
		if len(s.Interceptors[op]) == 0 {
			continue
		}
		what := op
		question := "ask" + s.ID + model.Identifier(what)
		d.question(question, s, op)
		d.answer()
		for _, i := range s.Interceptors[op] {
			name := question + model.Identifier(i.Name)
			d.channel(name, "intercept."+op+"."+s.Name+"."+i.Name, "Called before the operation, for "+i.Timeout.String()+" at most. A failure means "+i.OnError+".", nil, question)
			d.channel(name+"Answer", nil, "The inbox of belfry.", nil, "Answer")
			d.operation(name, "send", name, "May "+op+" of "+s.Name+" take place?", name+"Answer", nil)
		}
	}
}

// question adds the request to an interceptor.
func (d *document) question(name string, s *model.Store, op string) {
	o := ordered.Of("type", "object", "description", "As it would be stored, without private fields; of get, as it would be returned.")
	properties := []any{
		"op", ordered.Of("type", "string", "const", op), "store", ordered.Of("type", "string", "const", s.Name),
		"uuid", text("The object's uuid; absent for register, because the user does not exist yet."),
		"actor", ordered.Of("type", []any{"string", "null"}, "description", "The uuid of the user who acts."),
		"ctx", model.Ref("Context"),
		"object", o,
	}
	if op != "register" {
		properties = append(properties, "arraysOmitted", ordered.Of("type", "array", "items", ordered.Of("type", "string"), "description",
			"The mapped arrays that the object, and the stored one, are without, because they were too large for a message."))
	}
	if op == "update" || op == "delete" {
		properties = append(properties, "stored", ordered.Of("type", "object", "description", "As it is."),
			"storedOmitted", ordered.Of("type", "boolean", "const", true, "description", "It was too large for a message."))
	}
	if op == "register" {
		properties = append(properties, "datas", ordered.Of("type", "object", "description", "The form without password and token, or the provider's profile."))
	}
	d.message(name, ordered.Of("title", "May "+op+" of "+s.Name+" take place?", "payload", object("", 5, properties...)))
}

// answer adds the replies of an interceptor.
func (d *document) answer() {
	closed := func(o *ordered.Object) *ordered.Object { o.Set("additionalProperties", false); return o }
	d.message("Answer", ordered.Of("title", "Whether it may", "payload", ordered.Of("oneOf", []any{
		closed(object("It may.", 1, "allow", ordered.Of("type", "boolean", "const", true))),
		closed(object("It may not.", 1, "refuse", object("", 0,
			"status", ordered.Of("type", "integer", "minimum", 400, "maximum", 499, "description", "403 without it."),
			"message", text("The message for the client.")))),
		closed(object("It may, like this.", 1, "amend", ordered.Of("type", "object", "description", "A merge patch (RFC 7396) on the object."))),
	})))
}
