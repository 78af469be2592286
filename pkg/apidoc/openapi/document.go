// Package openapi generates the OpenAPI document of a set of operations: of those that the router mounts, with every status that they
// return. Its own are the envelope, the components that operations refer to, and the translation into OpenAPI 3.0.
package openapi

import (
	"slices"
	"strconv"
	"strings"

	"belfry/internal/ordered"
	"belfry/pkg/apidoc/model"
	"belfry/pkg/op"
)

// Document returns the document of operations in OpenAPI 3.1. The same contract gives the same bytes.
func Document(set *op.Set) ([]byte, error) { return whole(set).Encode() }

// whole is the document in OpenAPI 3.1.
func whole(set *op.Set) *ordered.Object {
	k := set.Contract
	d := &document{contract: k, set: set, names: model.Names{}, paths: &ordered.Object{}}
	for _, s := range k.Stores {
		if s.Expose != nil {
			d.store(s)
		}
	}
	d.batch()
	d.login()
	for _, f := range k.Files {
		d.files(f)
	}
	for _, o := range set.Operations() {
		d.add(operation{strings.ToLower(o.Method), o.Path, o.Tag, o.ID, o.Summary, o.Description, o.Parameters, o.Body, o.Replies, append(o.Problems, 500, 503), o.Security})
	}
	return ordered.Of(
		"openapi", "3.1.0",
		"info", ordered.Of("title", "belfry", "version", k.Version, "summary", "JSON objects in stores, copies that stay right, an event for everything.",
			"description", description),
		"servers", []any{ordered.Of("url", k.BaseURL)},
		"security", op.Maybe(),
		"tags", append(d.tags, set.Tags()...),
		"paths", model.PlainIn(d.paths),
		"components", d.components(),
	)
}

const description = "Written from the running configuration.\n\n" +
	"`OPTIONS` is 204 with `Allow` on each path; a method that a path does not have is 405. Errors are problems (RFC 9457). " +
	"Any reply may have `Vary` and headers of limits, a reply to PATCH has `Accept-Patch`, and pages and redirects have headers that protect browsers. " +
	"A body of `text/json` is read as `application/json`, and one of `application/ndjson`, `application/jsonl`, `application/x-jsonl`, `application/jsonlines` or `application/x-jsonlines` as " +
	"`application/x-ndjson`, where an operation takes these. " +
	"What is no HTTP/1.1 at all is refused in plain text, with 400, 417, 431, 501 or 505.\n\n" +
	"Objects that were written under another schema than the one of today may differ from it, as may what an interceptor has amended."

// document is a document under construction.
type document struct {
	contract *model.Contract
	set      *op.Set
	names    model.Names // of operations
	tags     []any
	paths    *ordered.Object
}

func (d *document) tag(name, description string) {
	d.tags = append(d.tags, ordered.Of("name", name, "description", description))
}

// operation is one method of one path.
type operation struct {
	method, path, tag string
	id                string
	summary           string
	description       string
	parameters        []any
	body              *ordered.Object
	replies           *ordered.Object // by status
	problems          []int           // statuses of problems
	security          []any           // nil: that of the document
}

// add adds an operation.
func (d *document) add(o operation) {
	path := d.paths.Object(o.path)
	if path == nil {
		path = &ordered.Object{}
		d.paths.Set(o.path, path)
	}
	replies := o.replies.Clone()
	problems := slices.Sorted(slices.Values(o.problems))
	if slices.Contains(problems, 401) { // it reads credentials: the rule of an API key can refuse any request
		problems = slices.Sorted(slices.Values(append(problems, 403)))
	}
	for _, status := range slices.Compact(problems) {
		replies.Set(strconv.Itoa(status), ordered.Of("$ref", "#/components/responses/"+problemOf(status).name))
	}
	out := ordered.Of("operationId", d.names.Take(o.id), "tags", []string{o.tag}, "summary", o.summary)
	if o.description != "" {
		out.Set("description", o.description)
	}
	if o.security != nil {
		out.Set("security", o.security)
	}
	if o.parameters != nil {
		out.Set("parameters", o.parameters)
	}
	if o.body != nil {
		out.Set("requestBody", o.body)
	}
	out.Set("responses", replies)
	path.Set(o.method, out)
}

// get adds a GET and its HEAD.
func (d *document) get(o operation) {
	o.method = "get"
	d.add(o)
	o.method, o.id = "head", "head"+strings.TrimPrefix(strings.ToUpper(o.id[:1])+o.id[1:], "Get")
	o.summary, o.description = "The headers that GET has", ""
	replies := &ordered.Object{}
	for _, m := range o.replies.Members() {
		r := m.Value.(*ordered.Object).Clone()
		r.Delete("content")
		replies.Set(m.Name, r)
	}
	o.replies = replies
	d.add(o)
}

// Security: none is needed, and one of two may be shown; or one has to be.
func maybe() []any { return append([]any{&ordered.Object{}}, needed()...) }
func needed() []any {
	return []any{ordered.Of("sessionCookie", []any{}), ordered.Of("bearerToken", []any{})}
}
func open() []any { return []any{} }

// asJSON is a content of one media type.
func asJSON(schema *ordered.Object) *ordered.Object { return as(jsonType, schema) }

func as(mediaType string, schema *ordered.Object) *ordered.Object {
	return ordered.Of(mediaType, ordered.Of("schema", schema))
}

func body(content *ordered.Object) *ordered.Object {
	return ordered.Of("required", true, "content", content)
}

// reply is a response with the common headers and the named ones, as references to
// components. A header has the name of its component, or both are given: name=component. content can be nil.
func reply(description string, content *ordered.Object, headers ...string) *ordered.Object {
	all := &ordered.Object{}
	for _, name := range append(headers, "X-Request-Id") {
		name, component, other := strings.Cut(name, "=")
		if !other {
			component = name
		}
		all.Set(name, ordered.Of("$ref", "#/components/headers/"+component))
	}
	r := ordered.Of("description", description, "headers", all)
	if content != nil {
		r.Set("content", content)
	}
	return r
}

// parameters are references to components.
func parameters(names ...string) []any {
	var all []any
	for _, name := range names {
		all = append(all, ordered.Of("$ref", "#/components/parameters/"+name))
	}
	return all
}
