package openapi

import (
	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
	"belfry/pkg/wire"
)

// components returns the components that operations reference, directly or not.
func (d *document) components() *ordered.Object {
	all := ordered.Of("schemas", d.schemas(), "responses", responses(), "parameters", allParameters(), "headers",
		allHeaders())
	kept := apimodel.Reachable(all, "#/components/", d.paths)
	for _, m := range kept.Object("schemas").Members() {
		kept.Object("schemas").Set(m.Name, apimodel.Plain(m.Value.(*ordered.Object)))
	}
	for _, kind := range []string{"responses", "parameters", "headers"} {
		kept.Set(kind, apimodel.PlainIn(kept.Object(kind)))
	}
	kept.Set("securitySchemes", d.securitySchemes())
	return kept
}

// schemas are the schemas of the stores and of belfry itself.
func (d *document) schemas() *ordered.Object {
	all := &ordered.Object{}
	for _, s := range d.set.Contract.Stores {
		all.Set(s.ObjectName(), withExample(s.Object, s.Example))
		all.Set(s.InputName(), withExample(s.Input, s.NewExample))
		all.Set(s.UpdateName(), s.Update)
		all.Set(s.PatchName(), s.Patch)
		all.Set(s.PageName(), s.Page)
		all.Set(s.PartialName(), s.Partial)
		all.Set(s.EventName(), d.streamed(s))
		for _, p := range s.Parts {
			all.Set(p.Name, p.Schema)
		}
	}
	own := d.set.Components()
	own.Set(apimodel.FileRecord, apimodel.Record())
	own.Set(apimodel.UUIDOnly, apimodel.OnlyUUID())
	own.Set("Problem", problem())
	own.Set("ProblemField", problemField())
	addProblems(own)
	for _, name := range apimodel.OwnComponents() {
		if schema := own.Object(name); schema != nil {
			all.Set(name, schema)
		}
	}
	for _, m := range own.Members() {
		all.Set(m.Name, m.Value)
	}
	return all
}

func withExample(schema, example *ordered.Object) *ordered.Object {
	if example.Len() == 0 {
		return schema
	}
	out := schema.Clone()
	out.Set("examples", []any{example})
	return out
}

func (d *document) securitySchemes() *ordered.Object {
	cookie := d.set.Contract.Login.Cookie
	if d.set.Contract.Login.Secure {
		cookie = "__Host-" + cookie
	}
	return ordered.Of(
		"sessionCookie", ordered.Of("type", "apiKey", "in", "cookie", "name", cookie,
			"description", "The session cookie, set by a login. A request with an invalid cookie is anonymous."),
		"bearerToken", ordered.Of("type", "http", "scheme", "bearer",
			"description", "The token of a login, or an API key, for programs. With an invalid token the reply is "+
				"401. If the rule of an API key does not allow the request, it is 403."),
	)
}

// allParameters are the parameters that several operations share.
func allParameters() *ordered.Object {
	header := func(name, description, example string) *ordered.Object {
		return ordered.Of("name", name, "in", "header", "description", description,
			"schema", ordered.Of("type", "string"), "example", example)
	}
	return ordered.Of(
		"UUID", ordered.Of("name", "uuid", "in", "path", "required", true, "description", "The object's uuid.",
			"schema", ordered.Of("type", "string", "minLength", 1, "maxLength", 200, "pattern", apimodel.UUIDPattern)),
		"IfMatch", header("If-Match",
			"Only act on one of these revisions; `*` is any, and a part after a hyphen is ignored. At most 64.",
			`"`+apimodel.ExampleRevision+`"`),
		"IfNoneMatch", header("If-None-Match", "Only reply if the revision is not one of these; else 304. `*` is any.",
			`"`+apimodel.ExampleRevision+`"`),
		"IfAbsent", ordered.Of("name", "If-None-Match", "in", "header",
			"description", "`*`: only if nothing exists yet, else 412. Tags are refused.", "schema",
			ordered.Of("type", "string", "const", "*")),
		"IdempotencyKey", ordered.Of("name", wire.HeaderKey, "in", "header",
			"description", "Makes the request have one effect and one reply, however often it is sent within 24 "+
				"hours. A key belongs to its user and its store, and is for one request.",
			"schema", ordered.Of("type", "string", "minLength", 1, "maxLength", wire.MaxKey, "pattern", "^[ -~]+$"),
			"example", "form-17"),
		"Prefer", header("Prefer", "`wait=5`: reply once arrays and cascades are up to date, after 5 seconds at the "+
			"latest (RFC 7240). At most 30.", "wait=5"),
		"PreferSession",
		header("Prefer", "`return=representation`: the reply has the token of the session, and its user (RFC 7240). "+
			"`wait=5`: reply once arrays are up to date.", "return=representation"),
	)
}

// allHeaders are the headers of responses.
func allHeaders() *ordered.Object {
	header := func(description, pattern string) *ordered.Object {
		schema := ordered.Of("type", "string")
		if pattern != "" {
			schema.Set("pattern", pattern)
		}
		return ordered.Of("description", description, "required", true, "schema", schema)
	}
	optional := func(description string) *ordered.Object {
		return ordered.Of("description", description, "schema", ordered.Of("type", "string"))
	}
	return ordered.Of(
		"X-Request-Id",
		header("The request's id, also in the log, in problems, and in the events that the request causes.", ""),
		"Etag", header("The version of the content: an object's revision, or a file's hash. A hash of the reply "+
			"follows the revision if replies to other clients or requests may differ.", `^"[^"]*"$`),
		"Last-Modified", optional("The time of the upload."),
		"Cache-Control", header("Whether the reply may be cached.", ""),
		"Pragma", optional("no-cache, as RFC 6749 requires."),
		"X-Accel-Buffering", optional("no: proxies forward each event at once."),
		"Location", header("The URL of the new resource.", ""),
		"Preference-Applied",
		optional("`wait`: all that the write caused has been applied. `return=representation`: the reply has the "+
			"result of the request."),
		"Idempotency-Replayed", ordered.Of("description",
			"The reply is that of an earlier request with the same Idempotency-Key.", "schema",
			ordered.Of("type", "string", "const", "true")),
		"Link", optional(`The next page, with rel="next", and the previous page, with rel="prev".`),
		"Help", optional(`A page about this type of problem, with rel="help", where the console is served.`),
		"Accept-Patch", header("The media types that PATCH accepts.", ""),
		"Accept-Encoding", optional("The accepted encodings of a body."),
		"Set-Cookie", optional("The session's cookie."),
		"Www-Authenticate", header("How to authenticate.", ""),
		"Insufficient-Scope",
		optional(`Bearer error="insufficient_scope"`+": the rule of an API key does not allow the request (RFC 6750)."),
		"Retry-After", header("Seconds after which to try again.", `^[1-9][0-9]*$`),
		"Ratelimit",
		optional("The rest of limits that are more than half used up: r, within t seconds "+
			"(draft-ietf-httpapi-ratelimit-headers-11). Other replies may have it too."),
		"Ratelimit-Policy",
		optional("These limits: q requests, or bytes, at once, and as many within w seconds. Other replies may "+
			"have it too."),
		"Content-Disposition", header("Whether a browser shows the file or saves it, and under what name.", ""),
		"Content-Security-Policy", header("No script of a file runs.", ""),
		"Accept-Ranges", header("Ranges are supported, in bytes.", "^bytes$"),
		"Content-Range", header("The part, and the size of the whole, in bytes.", "^bytes "),
		"Repr-Digest", header("The hash of the whole file (RFC 9530).", "^sha-256="),
		"Content-Length", header("The size of the file, or of its part, in bytes.", "^[0-9]+$"),
	)
}
