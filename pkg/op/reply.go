package op

import (
	"cmp"
	"net/http"
	"strings"

	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
	"belfry/pkg/httpkit"
)

// Media types of bodies.
const (
	JSONType       = "application/json"
	MergePatchType = "application/merge-patch+json"
	ProblemType    = "application/problem+json"
	NDJSONType     = "application/x-ndjson"
	FormType       = "application/x-www-form-urlencoded"
	MultipartType  = "multipart/form-data"
	BytesType      = "application/octet-stream"
	HTMLType       = "text/html"
	AnyType        = "*/*"
)

// Maybe is the security of an operation that needs no credentials, and reads those of users.
func Maybe() []any { return append([]any{&ordered.Object{}}, Needed()...) }

// Needed is the security of an operation for logged-in users.
func Needed() []any {
	return []any{ordered.Of("sessionCookie", []any{}), ordered.Of("bearerToken", []any{})}
}

// Open is the security of an operation that reads no credentials.
func Open() []any { return []any{} }

// Content is content of one media type.
func Content(mediaType string, schema *ordered.Object) *ordered.Object {
	return ordered.Of(mediaType, ordered.Of("schema", schema))
}

// JSON is content that is JSON.
func JSON(schema *ordered.Object) *ordered.Object { return Content(JSONType, schema) }

// Reply is a response with the common headers and the named ones, as references to components. A header has the name of
// its component, or both are given: name=component. content can be nil.
func Reply(description string, content *ordered.Object, headers ...string) *ordered.Object {
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

// Redirect is a response that redirects.
func Redirect(description string, headers ...string) *ordered.Object {
	return Reply(description, nil, append([]string{"Location", "Cache-Control"}, headers...)...)
}

// ObjectReply is the response with an object of a store.
func ObjectReply(s *apimodel.Store, description string) *ordered.Object {
	return Reply(description, JSON(apimodel.Ref(s.ObjectName())), "Etag", "Cache-Control")
}

// Parameters are references to components.
func Parameters(names ...string) []any {
	var all []any
	for _, name := range names {
		all = append(all, ordered.Of("$ref", "#/components/parameters/"+name))
	}
	return all
}

// Path is a parameter of the path.
func Path(name, description string, schema *ordered.Object) *ordered.Object {
	return ordered.Of("name", name, "in", "path", "required", true, "description", description, "schema", schema)
}

// Query is a parameter of the query; its description can be "".
func Query(name, description string, schema *ordered.Object) *ordered.Object {
	return parameter(name, "query", description, schema)
}

// Header is a parameter that is a header.
func Header(name, description string) *ordered.Object {
	return parameter(name, "header", description, Text(""))
}

func parameter(name, in, description string, schema *ordered.Object) *ordered.Object {
	p := ordered.Of("name", name, "in", in)
	if description != "" {
		p.Set("description", description)
	}
	p.Set("schema", schema)
	return p
}

// InterceptorProblems are the statuses with which an interceptor can refuse, in addition to the statuses of its
// failures.
func InterceptorProblems(s *apimodel.Store, act string) []int {
	if s == nil || len(s.Interceptors[act]) == 0 {
		return nil
	}
	return []int{400, 401, 403, 404, 409, 412, 413, 415, 429, 503}
}

// Outcome is the result of a request: the reply to a program, and the redirect for the browser of an HTML form. The
// reply may already have been sent.
type Outcome struct {
	Status int // of the reply to a program; 0: 200 with a body, 204 without
	Body   any // of that reply, as JSON; nil: none

	To     string                        // redirect target of the browser
	Page   func(*httpkit.Exchange) error // shows the browser a page instead
	Failed string                        // redirect target after an error; "" for the default
	Reason string                        // of the error, for that page; "" for the one by its kind

	Problem bool // the browser gets the problem of an error, as a program does
}

// Send replies with an outcome, to a program or to the browser of an HTML form.
func (o Outcome) Send(x *httpkit.Exchange, html bool) error {
	switch {
	case x.Replied():
		return nil
	case html && o.Page != nil:
		return o.Page(x)
	case html:
		x.Redirect(o.To)
		return nil
	case o.Body != nil:
		return x.SendValue(cmp.Or(o.Status, http.StatusOK), o.Body)
	default:
		return x.SendStatus(cmp.Or(o.Status, http.StatusNoContent))
	}
}
