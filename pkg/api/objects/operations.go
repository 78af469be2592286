package objects

import (
	"fmt"
	"net/http"
	"strings"

	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
	"belfry/pkg/httpkit"
	"belfry/pkg/op"
)

// Operations adds the operations of all stores that are exposed, and batches of them.
func Operations(set *op.Set, all *Resources) {
	exposed := false
	for _, s := range set.Contract.Stores {
		if s.Expose != nil {
			addStore(set, s, all.of(s.Name))
			exposed = true
		}
	}
	if exposed {
		set.Component("ListPlan", apimodel.Plan())
		set.Component("StreamLine", streamLine())
		addBatch(set, all)
	}
}

// addStore adds the operations of a store, and says why the others are missing.
func addStore(set *op.Set, s *apimodel.Store, r *resource) {
	left, one := s.Expose.Restrict, s.Expose.URL+"/{uuid}"
	set.Tag(s.Name, describe(s))
	missing := func(path string, methods ...string) {
		for _, method := range methods {
			set.Missing(method, path, unexposed(s.Name, method))
		}
	}
	if left.Create {
		missing(s.Expose.URL, http.MethodPost)
	} else {
		addCreate(set, s, r.create)
	}
	if s.Expose.List {
		addList(set, s, r.list)
	} else {
		why := "the list of " + s.Name + " is not exposed: stores." + s.Name + ".expose.list is false"
		set.Missing(http.MethodGet, s.Expose.URL, why)
		set.Missing(http.MethodHead, s.Expose.URL, why)
	}
	if left.Get {
		missing(one, http.MethodGet, http.MethodHead)
	} else {
		addGet(set, s, one, r.get)
	}
	if left.Update {
		missing(one, http.MethodPut, http.MethodPatch)
	} else {
		addUpdate(set, s, one, op.Operation{
			Method: http.MethodPut, ID: "update" + s.ID, Summary: "Replace fields of an object",
			Description: "Replaces each given top-level field and keeps the others.",
			Body:        op.Body(op.JSON(apimodel.Ref(s.UpdateName()))), Run: r.replace,
		})
		patch := ordered.Of("schema", apimodel.Ref(s.PatchName()))
		addUpdate(set, s, one, op.Operation{
			Method: http.MethodPatch, ID: "patch" + s.ID, Summary: "Merge into an object",
			Description: "Merges nested objects as well, and null removes a field (RFC 7396).",
			Body:        op.Body(ordered.Of(op.MergePatchType, patch, op.JSONType, patch)), Run: r.patch,
		})
	}
	if left.Delete {
		missing(one, http.MethodDelete)
	} else {
		addDelete(set, s, one, r.delete)
	}
}

// describe describes a store.
func describe(s *apimodel.Store) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Objects of the store `%s`, of at most %d bytes as a client writes them.", s.Name, s.MaxSize)
	if s.Owner != "" {
		b.WriteString(" They belong to the users who created them.")
	}
	for _, a := range s.Arrays {
		fmt.Fprintf(&b, " `%s` has copies of the objects of `%s` that name the object", a.Name, a.Source)
		if a.Some {
			b.WriteString(" and meet the condition of the mapping")
		}
		b.WriteString(".")
		if a.Cascade {
			b.WriteString(" They are deleted with it.")
		}
	}
	return b.String()
}

// secured is the security of an operation: none unless the policy always requires a
// user.
func secured(s *apimodel.Store, act string) []any {
	if s.NeedsUser[act] {
		return op.Needed()
	}
	return nil
}

// written is the response to a write: the object as a get would return it. If only owners write, and owners may get, no
// get is refused.
func written(s *apimodel.Store, act, description string, headers ...string) *ordered.Object {
	schema := s.Shown()
	if s.OwnersGet && s.NeedsUser[act] && len(s.Interceptors["get"]) == 0 {
		schema = apimodel.Ref(s.ObjectName())
	}
	if s.Expose.Restrict.Get {
		schema = apimodel.Ref(apimodel.UUIDOnly)
	}
	return op.Reply(description, op.JSON(schema), append([]string{"Etag", "Cache-Control"}, headers...)...)
}

func addCreate(set *op.Set, s *apimodel.Store, run httpkit.Handler) {
	set.Add(op.Operation{
		Method: http.MethodPost, Path: s.Expose.URL, ID: "create" + s.ID, Summary: "Create an object",
		Description: "If the uuid is taken, the reply is 409, or 412 with `If-None-Match: *`. A body of " +
			"`application/x-ndjson` is a stream: each line is an object to create, and the reply has a line " +
			"for each, " +
			"in the same order." + s.Uniqueness(),
		Security:   secured(s, "create"),
		Parameters: op.Parameters("IfAbsent", "IdempotencyKey", "Prefer"),
		Body: op.Body(ordered.Of(op.JSONType, ordered.Of("schema", apimodel.Ref(s.InputName())), op.NDJSONType,
			ordered.Of("schema", lines("An object to create in each line.", s.InputName())))),
		Replies: ordered.Of("200", op.Reply("The replies to the lines of a stream.",
			op.Content(op.NDJSONType, lines("A reply in each line.", "StreamLine")), "Cache-Control"),
			"201", written(s, "create", "The object as it was stored.", "Location", "Preference-Applied",
				"Idempotency-Replayed")),
		Problems: append(op.InterceptorProblems(s, "save"), 400, 401, 403, 408, 409, 412, 413, 415, 429),
		Limit:    httpkit.Write, Run: run,
	})
}

// fields is the parameter of the fields to return. A reply has one schema for all requests. contentSchema, which
// validators ignore, refers to the schema of replies with some fields, so that generators make a type of it.
func fields(s *apimodel.Store) *ordered.Object {
	schema := op.Text("")
	schema.Set("contentSchema", apimodel.Ref(s.PartialName()))
	return op.Query("fields",
		"The fields to return, as `title,address.city`; all without it. The uuid is always returned. Other fields "+
			"are absent, "+
			"even if the schema requires them: each object is then a "+s.PartialName()+".", schema)
}

// lines is the schema of a text of JSON lines. OpenAPI 3.1 can't say what the lines are: contentSchema refers to the
// schema of each.
func lines(description, name string) *ordered.Object {
	return ordered.Of("type", "string", "description", description+" contentSchema is the schema of a line.",
		"contentMediaType", op.NDJSONType, "contentSchema", apimodel.Ref(name))
}

// streamLine is a line of the reply to a stream of objects.
func streamLine() *ordered.Object {
	return op.Object("The reply to a line of a stream: the created object, or the problem.", 2,
		"line", ordered.Of("type", "integer", "minimum", 1, "description", "The number of the line."),
		"status", ordered.Of("type", "integer", "description", "The status of a request with only this line."),
		"uuid", apimodel.UUID("The object's uuid."),
		"revision", ordered.Of("type", "integer", "format", "int64", "minimum", 1, "description", "Its revision."),
		"problem", apimodel.Ref("Problem"))
}

// expand is the parameter of the fields that can be expanded, if there are any.
func expand(s *apimodel.Store) []any {
	var names []any
	for _, key := range s.Expand {
		names = append(names, key.Name)
	}
	if names == nil {
		return nil
	}
	p := op.Query("expand", "The fields whose objects are returned in `_expanded`.", op.List(op.OneOf(names, "")))
	p.Set("style", "form")
	p.Set("explode", false)
	return []any{p}
}

// search is the parameter of the words to find, if the text of the objects is indexed.
func search(s *apimodel.Store) []any {
	if len(s.Search) == 0 {
		return nil
	}
	return []any{op.Query("q", "The words to find in `"+strings.Join(s.Search, "`, `")+
		"`: objects with all of them, the best matches first. `\"in this order\"`, `begin*`, `-without`.", op.Text(""))}
}

func addList(set *op.Set, s *apimodel.Store, run httpkit.Handler) {
	var indexes []string
	for _, fields := range s.Indexes {
		indexes = append(indexes, "`"+strings.Join(fields, ", ")+"`")
	}
	known := "No index is declared: objects can be listed by uuid only."
	if indexes != nil {
		known = "A query that no index supports is 400. Indexes: " + strings.Join(indexes, "; ") + "."
	}
	problems := []int{400, 401, 403, 429}
	if len(s.Expand) > 0 {
		problems = append(problems, 413)
	}
	set.Get(op.Operation{
		Path: s.Expose.URL, ID: "list" + s.ID, Summary: "List objects", Description: known,
		Security: secured(s, "list"),
		Parameters: append([]any{
			op.Query("filter", "`field == literal`, `!=`, `<`, `<=`, `>`, `>=`, `field in [literals]`, `literal in "+
				"array`, `field.startsWith(\"...\")`, `has(field)`, joined by `&&`, `||`, `!`.", op.Text("")),
			op.Query("sort", "Fields separated by commas, each with `-` for descending.", op.Text("")),
			op.Query("limit", "Objects a page.",
				ordered.Of("type", "integer", "minimum", 1, "maximum", 500, "default", 50)),
			op.Query("cursor", "Where to continue: `cursor` of the previous page, with the same filter and sort.",
				op.Text("")),
			op.Query("before",
				"Go back: `before` of the page that follows, instead of `cursor`, with the same filter and sort.",
				op.Text("")),
			fields(s),
			op.Query("count", "Count the objects that match.", op.OneOf([]any{"exact", "estimate"}, "")),
			op.Query("explain", "Return how the page was read; for admins.", op.Flag("")),
		}, append(expand(s), search(s)...)...),
		Replies: ordered.Of("200",
			op.Reply("A page of objects.", op.JSON(apimodel.Ref(s.PageName())), "Cache-Control", "Link")),
		Problems: problems, Limit: httpkit.List, Run: run,
	})
}

func addGet(set *op.Set, s *apimodel.Store, path string, run httpkit.Handler) {
	problems := append(op.InterceptorProblems(s, "get"), 400, 401, 404, 412, 429)
	if s.Rules["get"] {
		problems = append(problems, 403)
	}
	if len(s.Expand) > 0 {
		problems = append(problems, 413)
	}
	set.Get(op.Operation{
		Path: path, ID: "get" + s.ID, Summary: "Read an object",
		Security:   secured(s, "get"),
		Parameters: append(append(op.Parameters("UUID", "IfMatch", "IfNoneMatch"), fields(s)), expand(s)...),
		Replies: ordered.Of(
			"200", op.ObjectReply(s, "The object."),
			"304", op.Reply("The object is at a revision that the client has.", nil, "Etag", "Cache-Control"),
		),
		Problems: problems, Limit: httpkit.Read, Run: run,
	})
}

func addUpdate(set *op.Set, s *apimodel.Store, path string, o op.Operation) {
	headers := []string{"Preference-Applied", "Idempotency-Replayed"}
	if o.Method == http.MethodPatch {
		headers = append(headers, "Accept-Patch")
	}
	o.Path, o.Security, o.Description = path, secured(s, "update"), o.Description+s.Uniqueness()
	o.Parameters = op.Parameters("UUID", "IfMatch", "IfAbsent", "IdempotencyKey", "Prefer")
	o.Replies = ordered.Of("200", written(s, "update", "The object after the write.", headers...))
	o.Problems = append(op.InterceptorProblems(s, "update"), 400, 401, 403, 404, 408, 409, 412, 413, 415, 429)
	o.Limit = httpkit.Write
	set.Add(o)
}

func addDelete(set *op.Set, s *apimodel.Store, path string, run httpkit.Handler) {
	set.Add(op.Operation{
		Method: http.MethodDelete, Path: path, ID: "delete" + s.ID, Summary: "Delete an object",
		Security:   secured(s, "delete"),
		Parameters: op.Parameters("UUID", "IfMatch", "IfAbsent", "IdempotencyKey", "Prefer"),
		Replies: ordered.Of("204",
			op.Reply("The object was deleted.", nil, "Cache-Control", "Preference-Applied", "Idempotency-Replayed")),
		Problems: append(op.InterceptorProblems(s, "delete"), 400, 401, 403, 404, 409, 412, 429),
		Limit:    httpkit.Write, Run: run,
	})
}
