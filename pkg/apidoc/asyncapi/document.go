// Package asyncapi generates the AsyncAPI 3 document of a configuration: the
// durable and the live events, the requests to stores, the interceptors and the
// dead letters.
//
// The requests to stores are those of an op.Set, which natsapi serves. It has its own knowledge of events, which
// docs/reference/events.md and the pages beside it document; test/documents compares the document with belfry's
// messages. Its schemas are of draft-07, as AsyncAPI 3 requires; see lower.go.
package asyncapi

import (
	"net/url"
	"strconv"

	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
	"belfry/pkg/op"
)

// Document returns the document of a set of operations. The same contract gives the same bytes.
func Document(set *op.Set) ([]byte, error) {
	k := set.Contract
	d := &document{
		set: set, contract: k, channels: &ordered.Object{}, operations: &ordered.Object{},
		messages: &ordered.Object{}, schemas: &ordered.Object{}, plain: &ordered.Object{},
	}
	d.common()
	for _, s := range k.Stores {
		d.shapes(s)
		d.events(s)
	}
	d.live()
	for _, s := range k.Stores {
		d.requests(s)
		d.interceptors(s)
	}
	d.deadLetters()
	used := apimodel.Reachable(ordered.Of("schemas", d.schemas, "messages", d.messages), "#/components/", d.channels)
	components := &ordered.Object{}
	if schemas := used.Object("schemas"); schemas != nil {
		for _, m := range schemas.Members() {
			schemas.Set(m.Name, apimodel.Plain(m.Value.(*ordered.Object)))
		}
		components.Set("schemas", lower(schemas))
	}
	components.Set("messages", lowerMessages(used.Object("messages")))
	return ordered.Of(
		"asyncapi", "3.0.0",
		"info", ordered.Of("title", "belfry", "version", k.Version, "description", description),
		"defaultContentType", "application/json",
		"servers", servers(k.Bus),
		"channels", d.channels,
		"operations", d.operations,
		"components", components,
	).Encode()
}

const description = "Written from the running configuration, for NATS. " +
	"Durable events are in the log, the JetStream stream EVENTS, and are delivered through its consumers at " +
	"least once. " +
	"Live subjects carry each event to connected subscribers, and announcements before an operation, neither of them " +
	"durable. " +
	"Internal stores (sessions, for instance) have events as well, which are not described. " +
	"Objects that were written under an earlier schema may differ from the present one."

// document is a document under construction.
type document struct {
	set                  *op.Set
	contract             *apimodel.Contract
	channels, operations *ordered.Object
	messages, schemas    *ordered.Object // components
	plain                *ordered.Object // messages of the live subjects, by subject
}

func servers(addresses []string) *ordered.Object {
	all := &ordered.Object{}
	for i, address := range addresses {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" {
			continue
		}
		name := "bus"
		if i > 0 {
			name += strconv.Itoa(i + 1)
		}
		protocol := u.Scheme
		if protocol == "tls" {
			protocol = "nats"
		}
		all.Set(name, ordered.Of("host", u.Host, "protocol", protocol, "description", "NATS with JetStream."))
	}
	if all.Len() == 0 {
		return nil
	}
	return all
}

// message adds a message to the components.
func (d *document) message(name string, message *ordered.Object) {
	whole := ordered.Of("name", name)
	for _, m := range message.Members() {
		whole.Set(m.Name, m.Value)
	}
	d.messages.Set(name, whole)
}

// channel adds a channel of messages that are components.
func (d *document) channel(name string, address any, description string, parameters *ordered.Object,
	messages ...string) {
	all := &ordered.Object{}
	for _, message := range messages {
		all.Set(message, ordered.Of("$ref", "#/components/messages/"+message))
	}
	if address == nil {
		address = ordered.Null()
	}
	d.channels.Set(name,
		ordered.Of("address", address, "description", description, "messages", all, "parameters", parameters))
}

// operation adds an operation of belfry on a channel, send or receive, and its reply
// channel if that is not "".
func (d *document) operation(name, action, channel, summary, answers string, bindings *ordered.Object) {
	o := ordered.Of("action", action, "channel", ref("#/channels/"+channel), "summary", summary, "bindings", bindings)
	if answers != "" {
		o.Set("reply", ordered.Of("channel", ref("#/channels/"+answers)))
	}
	d.operations.Set(name, o)
}

func ref(to string) *ordered.Object { return ordered.Of("$ref", to) }

// shapes adds the schemas of a store. Their names are those of the OpenAPI
// document; the schemas have the fields that only programs on the bus may set.
func (d *document) shapes(s *apimodel.Store) {
	d.schemas.Set(s.ObjectName(), s.Object)
	d.schemas.Set(s.FormerName(), s.Former)
	d.schemas.Set(s.InputName(), s.Save)
	d.schemas.Set(s.UpdateName(), s.Change)
	for _, p := range s.Parts {
		d.schemas.Set(p.Name, p.Schema)
	}
}

// common adds the schemas that belong to no store.
func (d *document) common() {
	d.schemas.Set(apimodel.FileRecord, apimodel.Record())
	d.schemas.Set(apimodel.UUIDOnly, apimodel.OnlyUUID())
	d.schemas.Set("ListPlan", apimodel.Plan())
	d.schemas.Set("Context", ordered.Of("type", "object", "description", "The request that caused the event.",
		"properties", ordered.Of(
			"request", op.Text("The request's id."), "address", op.Text("Where the request came from."),
			"userAgent", op.Text("The client's User-Agent."), "trace", op.Text("Its traceparent (W3C)."),
			"wait", op.Text("Used by belfry and its workers."),
			"rest", op.Text("Used by belfry and its workers."),
		)))
	d.schemas.Set("Problem", ordered.Of("type", "object", "description", "The problem, in the form of RFC 9457.",
		"required", []string{"type", "title", "status"},
		"properties", ordered.Of(
			"type", op.Text("The type of the problem, for programs."), "title",
			op.Text("The type of the problem, for people."),
			"status", ordered.Of("type", "integer", "description", "As over HTTP."), "detail",
			op.Text("This occurrence of the problem."),
			"errors", ordered.Of("type", "array", "description", "The invalid places of the request.", "items",
				apimodel.Ref("ProblemField")),
		)))
	d.schemas.Set("ProblemField", ordered.Of("type", "object", "required", []string{"pointer", "message"},
		"properties",
		ordered.Of("pointer", op.Text("A JSON pointer (RFC 6901)."), "message", op.Text("The expected value."))))
}
