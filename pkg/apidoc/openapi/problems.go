package openapi

import (
	"strconv"

	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
	"belfry/pkg/op"
	problems "belfry/pkg/problem"
)

// failure is the status of an error.
type failure struct {
	status  int
	name    string   // of the component
	types   []string // of problems, after urn:belfry:problem:
	what    string
	headers []string
}

// failures are all errors of docs/reference/errors.md.
func failures() []failure {
	return []failure{
		{400, "Invalid", []string{"invalid"}, "The request is not valid: malformed, or refused by the schema.", nil},
		{401, "Unauthenticated",
			[]string{"unauthenticated",
				"step-up-required"}, "The request needs a login, its token is not valid, or the logged-in user has " +
				"to take another step first: `step` names it.",
			[]string{"Www-Authenticate", "Set-Cookie", "Preference-Applied"}},
		{403, "Denied",
			[]string{"denied"}, "The policy denies, a password or a token is wrong, the rule of an API key does not " +
				"allow it, or the request comes from a page of another origin.",
			[]string{"Www-Authenticate=Insufficient-Scope"}},
		{404, "NotFound", []string{"not-found"}, "The resource does not exist.", nil},
		{408, "TooSlow", []string{"timeout"}, "The body arrived too slowly.", nil},
		{409, "Conflict",
			[]string{"exists", "taken",
				"conflict"}, "The object already exists, another object has a value that must be unique (`errors` " +
				"names the fields), or the request conflicts with the current state.", nil},
		{412, "Mismatch", []string{"mismatch"}, "A precondition does not hold.", nil},
		{413, "TooLarge", []string{"too-large"}, "The object or the body is too large.", nil},
		{415, "Unsupported", []string{"unsupported"}, "The media type, charset or encoding is not supported.",
			[]string{"Accept-Encoding"}},
		{416, "NoSuchRange", []string{"range"}, "No byte of the file is in the range.",
			[]string{"Etag", "Last-Modified", "Content-Range"}},
		{421, "Misdirected", []string{"misdirected"}, "The configuration does not name the host of the request.", nil},
		{429, "Limited", []string{"limited"},
			"The request exceeds a limit of the client, or the cost that a rule, an interceptor or a list may have.",
			[]string{"Retry-After", "Ratelimit", "Ratelimit-Policy"}},
		{500, "Internal", []string{"internal"}, "An internal error; the server's log has it under the request's id.",
			nil},
		{503, "Unavailable", []string{"unavailable"},
			"Something that belfry needs is unavailable, or belfry is starting or stopping.", []string{"Retry-After"}},
	}
}

func problemOf(status int) failure {
	for _, f := range failures() {
		if f.status == status {
			return f
		}
	}
	panic("openapi: no problem has status " + strconv.Itoa(status))
}

// responses are the error responses.
func responses() *ordered.Object {
	all := &ordered.Object{}
	for _, f := range failures() {
		all.Set(f.name, op.Reply(f.what, op.Content(op.ProblemType, apimodel.Ref(f.name+"Problem")),
			append([]string{"Cache-Control", "Link=Help"}, f.headers...)...))
	}
	return all
}

// addProblems adds the schemas of the problems of each status. They are components, of which generators make one type
// each.
func addProblems(all *ordered.Object) {
	for _, f := range failures() {
		types := []any{}
		for _, t := range f.types {
			types = append(types, problems.TypePrefix+t)
		}
		all.Set(f.name+"Problem", ordered.Of("description", f.what, "allOf", []any{
			apimodel.Ref("Problem"),
			ordered.Of("type", "object",
				"properties", ordered.Of("type", ordered.Of("type", "string", "enum", types), "status",
					ordered.Of("type", "integer", "const", f.status))),
		}))
	}
}

func problem() *ordered.Object {
	return ordered.Of("type", "object", "description", "An error (RFC 9457).",
		"required", []string{"type", "title", "status", "instance"},
		"properties", ordered.Of(
			"type", ordered.Of("type", "string", "format", "uri", "description",
				"The type of the problem, for programs."),
			"title", op.Text("The type of the problem, for people."),
			"status", ordered.Of("type", "integer", "description", "The status of the reply."),
			"detail", op.Text("This occurrence of the problem."),
			"instance", op.Text("The request's id."),
			"step", ordered.Of("type", "string", "enum", []any{"second-factor", "reauthenticate", "enroll"},
				"description", "Only of step-up-required: prove a second factor, authenticate again, or add a second "+
					"factor to the account."),
			"maxAge", ordered.Of("type", "integer", "description",
				"Only of the step reauthenticate: the greatest age of the authentication, in seconds."),
			"factors", ordered.Of("type", "array", "items", ordered.Of("type", "string"), "description",
				"Only of a login whose second factor is missing: the types that can be used."),
			"flow", op.Text("Only of such a login, with `Prefer: return=representation`: the secret for `POST "+
				"/auth/second-factor`, instead of the cookie."),
			"currentRevision", op.Text("Only of mismatch, of an object: its present revision."),
			"onlyWorkers", ordered.Of("type", "boolean", "description", "Only of mismatch, of an object: nobody but "+
				"belfry's workers has written it since, so the write can be repeated with this revision."),
			"errors", ordered.Of("type", "array", "description", "The invalid places of the body.", "items",
				apimodel.Ref("ProblemField")),
			"rule", ordered.Of("type", "object", "description", "The rule that denies; only with `development: true`.",
				"required", []string{"operation", "reason"},
				"properties", ordered.Of("operation", ordered.Of("type", "string"), "expression",
					ordered.Of("type", "string"), "reason", ordered.Of("type", "string"))),
		),
		"examples", []any{ordered.Of("type", problems.TypePrefix+"invalid", "title", "The request is not valid",
			"status", 400,
			"detail", "the object does not match the schema of the store", "instance",
			"8f14e45fceea167a5a36dedd4bea2543",
			"errors", []any{ordered.Of("pointer", "/title", "message", "is missing")})},
	)
}

func problemField() *ordered.Object {
	return ordered.Of("type", "object", "description", "An invalid place of the body.", "required",
		[]string{"pointer", "message"}, "properties", ordered.Of(
			"pointer", op.Text("A JSON pointer (RFC 6901); empty for the whole document."),
			"message", op.Text("The expected value."),
			"keyword", op.Text("The keyword of the store's schema that is violated; absent for other violations."),
		))
}
