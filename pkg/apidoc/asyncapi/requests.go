package asyncapi

import (
	"github.com/nats-io/nats.go/micro"

	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
	"belfry/pkg/op"
	"belfry/pkg/wire"
)

// requests adds the requests to a store.
func (d *document) requests(s *apimodel.Store) {
	for _, r := range d.set.Requests(s.Name) {
		name := r.Op + s.ID
		request := ordered.Of("summary", r.Summary, "headers", requestHeaders(r.Write), "payload", r.Payload)
		if r.Description != "" {
			request.Set("description", r.Description)
		}
		d.message(name+"Request", request)
		d.message(name+"Reply", ordered.Of("summary", "The result.", "payload", r.Reply))
		d.fault()
		d.channel(name, wire.Subject(s.Name, r.Op), r.Summary, nil, name+"Request")
		d.channel(name+"Reply", nil, "The inbox of the requester.", nil, name+"Reply", "Fault")
		d.operation(name, "receive", name, r.Summary, name+"Reply",
			ordered.Of("nats", ordered.Of("queue", micro.DefaultQueueGroup, "bindingVersion", "0.1.0")))
	}
}

// requestHeaders are the headers of a request.
func requestHeaders(writes bool) *ordered.Object {
	h := op.Payload("", 0,
		wire.HeaderActor, op.Text("The uuid of a user, only for the event's actor."),
		wire.HeaderTrace, op.Text("A traceparent (W3C)."), wire.HeaderID, op.Text("The request's id."))
	if writes {
		h.Object("properties").Set(wire.HeaderKey,
			ordered.Of("type", "string", "minLength", 1, "maxLength", wire.MaxKey, "pattern", "^[ -~]+$",
				"description", "A repeated request with this key has one effect and the same reply."))
	}
	return h
}

// fault adds the reply to a failed request.
func (d *document) fault() {
	d.message("Fault", ordered.Of(
		"title", "A problem",
		"headers", op.Payload("", 2,
			"Nats-Service-Error-Code",
			ordered.Of("type", "string", "pattern", "^[45][0-9][0-9]$", "description", "The status, as over HTTP."),
			"Nats-Service-Error", op.Text("This occurrence of the problem."),
			wire.HeaderRetryAfter, op.Text("The seconds to wait before a retry.")),
		"payload", apimodel.Ref("Problem"),
	))
}

// interceptors adds the requests that belfry sends to interceptors.
func (d *document) interceptors(s *apimodel.Store) {
	for _, act := range []string{"save", "update", "delete", "get", "register"} {
		if len(s.Interceptors[act]) == 0 {
			continue
		}
		what := act
		question := "ask" + s.ID + apimodel.Identifier(what)
		d.question(question, s, act)
		d.answer()
		for _, i := range s.Interceptors[act] {
			name := question + apimodel.Identifier(i.Name)
			d.channel(name, "intercept."+act+"."+s.Name+"."+i.Name,
				"Called before the operation, for "+i.Timeout.String()+" at most. A failure means "+i.OnError+".", nil,
				question)
			d.channel(name+"Answer", nil, "The inbox of belfry.", nil, "Answer")
			d.operation(name, "send", name, "Whether "+act+" of "+s.Name+" is permitted", name+"Answer", nil)
		}
	}
}

// question adds the request to an interceptor.
func (d *document) question(name string, s *apimodel.Store, act string) {
	o := ordered.Of("type", "object", "description",
		"The object as it would be stored, without private fields; for get, as it would be returned.")
	properties := []any{
		"op", ordered.Of("type", "string", "const", act), "store", ordered.Of("type", "string", "const", s.Name),
		"uuid", op.Text("The object's uuid; absent for register, because the user does not exist yet."),
		"actor", ordered.Of("type", []any{"string", "null"}, "description", "The uuid of the user who acts."),
		"ctx", apimodel.Ref("Context"),
		"object", o,
	}
	if act != "register" {
		properties = append(properties, "arraysOmitted",
			ordered.Of("type", "array", "items", ordered.Of("type", "string"), "description",
				"The mapped arrays that object and stored lack, because they were too large for a message."))
	}
	if act == "update" || act == "delete" {
		properties = append(properties, "stored", ordered.Of("type", "object", "description", "The stored object."),
			"storedOmitted",
			ordered.Of("type", "boolean", "const", true, "description", "It was too large for a message."))
	}
	if act == "register" {
		properties = append(properties,
			"datas", ordered.Of("type", "object", "description",
				"The form without password and token, or the provider's profile."))
	}
	d.message(name,
		ordered.Of("title", "Whether "+act+" of "+s.Name+" is permitted", "payload", op.Payload("", 5, properties...)))
}

// answer adds the replies of an interceptor.
func (d *document) answer() {
	closed := func(o *ordered.Object) *ordered.Object { o.Set("additionalProperties", false); return o }
	d.message("Answer", ordered.Of("title", "The decision", "payload", ordered.Of("oneOf", []any{
		closed(op.Payload("The operation is permitted.", 1, "allow", ordered.Of("type", "boolean", "const", true))),
		closed(op.Payload("The operation is refused.", 1, "refuse", op.Payload("", 0,
			"status", ordered.Of("type", "integer", "minimum", 400, "maximum", 499, "description", "403 by default."),
			"message", op.Text("The message for the client.")))),
		closed(op.Payload("The operation is permitted with changes.", 1, "amend",
			ordered.Of("type", "object", "description", "A merge patch (RFC 7396) on the object."))),
	})))
}
