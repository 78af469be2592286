package openapi

import (
	"fmt"
	"strings"

	"belfry/internal/ordered"
	"belfry/pkg/apidoc/model"
)

// store adds the routes of an exposed store.
func (d *document) store(s *model.Store) {
	r, one := s.Expose.Restrict, s.Expose.URL+"/{uuid}"
	d.tag(s.Name, describe(s))
	if !r.Create {
		d.create(s)
	}
	if s.Expose.List {
		d.list(s)
	}
	if !r.Get {
		d.read(s, one)
	}
	if !r.Update {
		d.update(s, one, operation{
			method: "put", id: "update" + s.ID, summary: "Replace fields of an object",
			description: "Replaces each given top-level field and keeps the others.",
			body:        body(asJSON(model.Ref(s.UpdateName()))),
		})
		patch := ordered.Of("schema", model.Ref(s.PatchName()))
		d.update(s, one, operation{
			method: "patch", id: "patch" + s.ID, summary: "Merge into an object",
			description: "Merges nested objects as well, and null removes a field (RFC 7396).",
			body:        body(ordered.Of(mergePatchType, patch, jsonType, patch)),
		})
	}
	if !r.Delete {
		d.delete(s, one)
	}
}

// describe says what a store has.
func describe(s *model.Store) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Objects of the store `%s`, of at most %d bytes as a client writes them.", s.Name, s.MaxSize)
	if s.Owner != "" {
		b.WriteString(" They belong to who created them.")
	}
	for _, a := range s.Arrays {
		fmt.Fprintf(&b, " `%s` holds copies of what refers to them in `%s`", a.Name, a.Source)
		if a.Some {
			b.WriteString(" and meets the conditions of the mapping")
		}
		if a.Cascade {
			b.WriteString(", which goes when they go")
		}
		b.WriteString(".")
	}
	return b.String()
}

// secured is the security of an operation: none unless the policy always requires a
// user.
func secured(s *model.Store, op string) []any {
	if s.NeedsUser[op] {
		return needed()
	}
	return nil
}

// object is the response with an object.
func object(s *model.Store, description string, headers ...string) *ordered.Object {
	return reply(description, asJSON(model.Ref(s.ObjectName())), append([]string{"Etag", "Cache-Control"}, headers...)...)
}

// written is the response to a write: with what a get would return. Where owners alone write,
// and owners may get, no get is refused.
func written(s *model.Store, op, description string, headers ...string) *ordered.Object {
	schema := shown(s)
	if s.OwnersGet && s.NeedsUser[op] && len(s.Interceptors["get"]) == 0 {
		schema = model.Ref(s.ObjectName())
	}
	if s.Expose.Restrict.Get {
		schema = model.Ref(model.UUIDOnly)
	}
	return reply(description, asJSON(schema), append([]string{"Etag", "Cache-Control"}, headers...)...)
}

// shown is an object to which a request led: the uuid alone where a get would be refused.
func shown(s *model.Store) *ordered.Object {
	return s.Written(s.Rules["get"] || len(s.Interceptors["get"]) > 0)
}

func (d *document) create(s *model.Store) {
	d.add(operation{
		method: "post", path: s.Expose.URL, tag: s.Name, id: "create" + s.ID, summary: "Create an object",
		description: "A uuid that is taken is 409; with `If-None-Match: *`, 412. A body of `application/x-ndjson` is a stream: each line is an object to create, and the reply has a line for each, in the same order." + s.Uniqueness(),
		security:    secured(s, "create"),
		parameters:  parameters("IfAbsent", "IdempotencyKey", "Prefer"),
		body:        body(ordered.Of(jsonType, ordered.Of("schema", model.Ref(s.InputName())), ndjsonType, ordered.Of("schema", lines("An object to create in each line.", s.InputName())))),
		replies:     ordered.Of("200", reply("The replies to the lines of a stream.", as(ndjsonType, lines("A reply in each line.", "StreamLine")), "Cache-Control"), "201", written(s, "create", "The object as it was stored.", "Location", "Preference-Applied", "Idempotency-Replayed")),
		problems:    append(interceptorProblems(s, "save"), 400, 401, 403, 408, 409, 412, 413, 415, 429, 500, 503),
	})
}

// query is a parameter of the query of a request.
func query(name, description string, schema *ordered.Object) *ordered.Object {
	return ordered.Of("name", name, "in", "query", "description", description, "schema", schema)
}

func text() *ordered.Object { return ordered.Of("type", "string") }

// fields is the parameter of the fields to return. A reply has one schema, whatever its request was: contentSchema, which validators ignore,
// refers to that of replies with some fields, so that generators make a type of it.
func fields(s *model.Store) *ordered.Object {
	schema := text()
	schema.Set("contentSchema", model.Ref(s.PartialName()))
	return query("fields", "The fields to return, as `title,address.city`; without it all. The uuid is always there, and what is left out is absent, "+
		"also where the schema requires it: each object is a "+s.PartialName()+" then.", schema)
}

// lines is the schema of a text of JSON lines. OpenAPI 3.1 can't say what the lines are: contentSchema refers to the schema of each.
func lines(description, name string) *ordered.Object {
	return ordered.Of("type", "string", "description", description+" contentSchema is that of a line.", "contentMediaType", ndjsonType, "contentSchema", model.Ref(name))
}

// streamLine is a line of the reply to a stream of objects.
func streamLine() *ordered.Object {
	return objectOf("The reply to a line of a stream: what was created, or the problem.", 2,
		"line", ordered.Of("type", "integer", "minimum", 1, "description", "The number of the line."),
		"status", ordered.Of("type", "integer", "description", "That of a request with the line alone."),
		"uuid", model.UUID("The object's uuid."),
		"revision", ordered.Of("type", "integer", "format", "int64", "minimum", 1, "description", "Its revision."),
		"problem", model.Ref("Problem"))
}

// expand is the parameter of what can be expanded, if anything can be.
func expand(s *model.Store) []any {
	var names []any
	for _, key := range s.Expand {
		names = append(names, key.Name)
	}
	if names == nil {
		return nil
	}
	p := query("expand", "The fields whose objects are returned in `_expanded`.", ordered.Of("type", "array", "items", ordered.Of("type", "string", "enum", names)))
	p.Set("style", "form")
	p.Set("explode", false)
	return []any{p}
}

// search is the parameter of the words to find, if the text of the objects is indexed.
func search(s *model.Store) []any {
	if len(s.Search) == 0 {
		return nil
	}
	return []any{query("q", "The words to find in `"+strings.Join(s.Search, "`, `")+"`: the objects that have all of them, the best matches first. `\"in this order\"`, `begin*`, `-without`.", text())}
}

func (d *document) list(s *model.Store) {
	var indexes []string
	for _, fields := range s.Indexes {
		indexes = append(indexes, "`"+strings.Join(fields, ", ")+"`")
	}
	known := "No index is declared: objects can be listed by uuid only."
	if indexes != nil {
		known = "A query that no index supports is 400. Indexes: " + strings.Join(indexes, "; ") + "."
	}
	problems := []int{400, 401, 403, 429, 500, 503}
	if len(s.Expand) > 0 {
		problems = append(problems, 413)
	}
	d.get(operation{
		path: s.Expose.URL, tag: s.Name, id: "list" + s.ID, summary: "List objects", description: known,
		security: secured(s, "list"),
		parameters: append([]any{
			query("filter", "`field == literal`, `!=`, `<`, `<=`, `>`, `>=`, `field in [literals]`, `literal in array`, `field.startsWith(\"...\")`, `has(field)`, joined by `&&`, `||`, `!`.", text()),
			query("sort", "Fields separated by commas, each with `-` for descending.", text()),
			query("limit", "Objects a page.", ordered.Of("type", "integer", "minimum", 1, "maximum", 500, "default", 50)),
			query("cursor", "Where to continue: `cursor` of the previous page, with the same filter and sort.", text()),
			query("before", "Go back: `before` of the page that follows, instead of `cursor`, with the same filter and sort.", text()),
			fields(s),
			query("count", "Count the objects that match.", ordered.Of("type", "string", "enum", []any{"exact", "estimate"})),
			query("explain", "Return how the page was read; for admins.", ordered.Of("type", "boolean")),
		}, append(expand(s), search(s)...)...),
		replies:  ordered.Of("200", reply("A page of objects.", asJSON(model.Ref(s.PageName())), "Cache-Control", "Link")),
		problems: problems,
	})
}

func (d *document) read(s *model.Store, path string) {
	problems := append(interceptorProblems(s, "get"), 400, 401, 404, 412, 429, 500, 503)
	if s.Rules["get"] {
		problems = append(problems, 403)
	}
	if len(s.Expand) > 0 {
		problems = append(problems, 413)
	}
	d.get(operation{
		path: path, tag: s.Name, id: "get" + s.ID, summary: "Read an object",
		security:   secured(s, "get"),
		parameters: append(append(parameters("UUID", "IfMatch", "IfNoneMatch"), fields(s)), expand(s)...),
		replies: ordered.Of(
			"200", object(s, "The object."),
			"304", reply("It is at a revision that the client has.", nil, "Etag", "Cache-Control"),
		),
		problems: problems,
	})
}

func (d *document) update(s *model.Store, path string, o operation) {
	headers := []string{"Preference-Applied", "Idempotency-Replayed"}
	if o.method == "patch" {
		headers = append(headers, "Accept-Patch")
	}
	o.path, o.tag, o.security, o.description = path, s.Name, secured(s, "update"), o.description+s.Uniqueness()
	o.parameters = parameters("UUID", "IfMatch", "IfAbsent", "IdempotencyKey", "Prefer")
	o.replies = ordered.Of("200", written(s, "update", "The object as it is now.", headers...))
	o.problems = append(interceptorProblems(s, "update"), 400, 401, 403, 404, 408, 409, 412, 413, 415, 429, 500, 503)
	d.add(o)
}

func (d *document) delete(s *model.Store, path string) {
	d.add(operation{
		method: "delete", path: path, tag: s.Name, id: "delete" + s.ID, summary: "Delete an object",
		security:   secured(s, "delete"),
		parameters: parameters("UUID", "IfMatch", "IfAbsent", "IdempotencyKey", "Prefer"),
		replies:    ordered.Of("204", reply("It was deleted.", nil, "Cache-Control", "Preference-Applied", "Idempotency-Replayed")),
		problems:   append(interceptorProblems(s, "delete"), 400, 401, 403, 404, 409, 412, 429, 500, 503),
	})
}
