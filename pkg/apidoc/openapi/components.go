package openapi

import (
	"belfry/internal/ordered"
	"belfry/pkg/apidoc/model"
	"belfry/pkg/wire"
)

// Media types.
const (
	jsonType       = "application/json"
	mergePatchType = "application/merge-patch+json"
	problemType    = "application/problem+json"
	ndjsonType     = "application/x-ndjson"
	formType       = "application/x-www-form-urlencoded"
	multipartType  = "multipart/form-data"
	bytesType      = "application/octet-stream"
	htmlType       = "text/html"
	anyType        = "*/*"
)

// components returns the components that operations reference, directly or not.
func (d *document) components() *ordered.Object {
	all := ordered.Of("schemas", d.schemas(), "responses", responses(), "parameters", allParameters(), "headers", allHeaders())
	kept := model.Reachable(all, "#/components/", d.paths)
	for _, m := range kept.Object("schemas").Members() {
		kept.Object("schemas").Set(m.Name, model.Plain(m.Value.(*ordered.Object)))
	}
	for _, kind := range []string{"responses", "parameters", "headers"} {
		kept.Set(kind, model.PlainIn(kept.Object(kind)))
	}
	kept.Set("securitySchemes", d.securitySchemes())
	return kept
}

// schemas are the schemas of the stores and of belfry itself.
func (d *document) schemas() *ordered.Object {
	all := &ordered.Object{}
	for _, s := range d.contract.Stores {
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
	all.Set(model.FileRecord, model.Record())
	all.Set(model.UUIDOnly, model.OnlyUUID())
	all.Set("Provider", provider())
	all.Set("Session", session())
	all.Set("APIKey", key())
	all.Set("Deletion", plannedDeletion())
	all.Set("Passkey", passkey())
	webauthn(all)
	all.Set("IssuedSession", d.loggedIn())
	all.Set("AccessToken", accessToken())
	all.Set("ProtocolError", protocolError())
	all.Set("Status", ordered.Of("type", "object", "description", "That requests are served.", "required", []string{"status"},
		"properties", ordered.Of(
			"status", only("ok"),
			"degraded", ordered.Of("type", "array", "items", ordered.Of("type", "string"), "description", "What does not work, of `/readyz`: for operators."),
		)))
	all.Set("ListPlan", model.Plan())
	all.Set("StreamLine", streamLine())
	all.Set("StreamNotice", streamNotice())
	all.Set("StreamSecurityEvent", securityEvent())
	all.Set("Batch", d.batchRequest())
	all.Set("BatchResults", batchResults())
	all.Set("Problem", problem())
	all.Set("ProblemField", problemField())
	addProblems(all)
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

func provider() *ordered.Object {
	return ordered.Of("type", "object", "description", "A login provider.", "required", []string{"name", "url"},
		"properties", ordered.Of(
			"name", ordered.Of("type", "string"),
			"url", ordered.Of("type", "string", "description", "The path to open, or for email, to send a form to."),
		))
}

func session() *ordered.Object {
	return ordered.Of("type", "object", "description", "A session of the user who is logged in.",
		"required", []string{"id", "current", "type", "created", "lastUsed", "expires", "aal", "authenticatedAt"},
		"properties", ordered.Of(
			"id", model.UUID("What ends it."),
			"current", ordered.Of("type", "boolean", "description", "It is that of this request."),
			"type", ordered.Of("type", "string", "description", "The provider by which it began."),
			"application", ordered.Of("type", "string", "description", "The configured redirect of the application that it is of."),
			"created", model.Time("When it began."),
			"lastUsed", model.Time("When it was last used, to about an hour."),
			"expires", model.Time("When it ends unless it is used."),
			"address", ordered.Of("type", "string", "description", "The network address that it began at."),
			"place", place(),
			"userAgent", ordered.Of("type", "string", "description", "The browser or program that it began in."),
			"device", device(),
			"methods", ordered.Of("type", "array", "items", ordered.Of("type", "string"), "description", "How its user has proven who they are: password, totp, recovery, passkey, link, code, or the name of a provider."),
			"aal", ordered.Of("type", "integer", "enum", []any{1, 2}, "description", "2 with a second factor."),
			"authenticatedAt", model.Time("When its user has last proven who they are."),
		))
}

// place is that of a network address.
func place() *ordered.Object {
	text := func(description string) *ordered.Object {
		return ordered.Of("type", "string", "description", description)
	}
	return ordered.Of("type", "object", "description", "Where the address is used, where a database of places is configured and has it.", "properties", ordered.Of(
		"city", text("In English."), "country", text("In English."), "countryCode", text("ISO 3166-1, two letters.")))
}

func device() *ordered.Object {
	return ordered.Of("type", "string", "description", "The browser and the system that the user agent names; absent for other programs.", "examples", []any{"Firefox on Linux"})
}

func key() *ordered.Object {
	return ordered.Of("type", "object", "description", "An API key of the user who is logged in.",
		"required", []string{"id", "name", "created"},
		"properties", ordered.Of(
			"id", model.UUID("What revokes it."),
			"name", ordered.Of("type", "string", "description", "What it is for."),
			"rule", ordered.Of("type", "string", "description", "The requests that it allows; without it, any."),
			"created", model.Time("When it was made."),
			"lastUsed", model.Time("When it was last used, to about an hour; absent before the first use."),
			"expires", model.Time("When it expires; absent: never."),
		))
}

func (d *document) securitySchemes() *ordered.Object {
	cookie := d.contract.Login.Cookie
	if d.contract.Login.Secure {
		cookie = "__Host-" + cookie
	}
	return ordered.Of(
		"sessionCookie", ordered.Of("type", "apiKey", "in", "cookie", "name", cookie,
			"description", "The session cookie, set by a login. A request with an invalid cookie is anonymous."),
		"bearerToken", ordered.Of("type", "http", "scheme", "bearer",
			"description", "The token of a login, or an API key, for programs. A token that is not good is 401, and a request that the rule of an API key does not allow is 403."),
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
			"schema", ordered.Of("type", "string", "minLength", 1, "maxLength", 200, "pattern", model.UUIDPattern)),
		"IfMatch", header("If-Match", "Act only on one of these revisions; `*` is any, and what follows a hyphen is ignored. At most 64.", `"`+model.ExampleRevision+`"`),
		"IfNoneMatch", header("If-None-Match", "Reply only if it is at none of these; else 304. `*` is any.", `"`+model.ExampleRevision+`"`),
		"IfAbsent", ordered.Of("name", "If-None-Match", "in", "header",
			"description", "`*`: only where there is nothing yet, else 412. Tags are refused.", "schema", ordered.Of("type", "string", "const", "*")),
		"IdempotencyKey", ordered.Of("name", wire.HeaderKey, "in", "header",
			"description", "Makes the request have one effect and one reply, however often it is sent within 24 hours. A key is of its user and its store, and for one request.",
			"schema", ordered.Of("type", "string", "minLength", 1, "maxLength", wire.MaxKey, "pattern", "^[ -~]+$"), "example", "form-17"),
		"Prefer", header("Prefer", "`wait=5`: reply once arrays and cascades have followed, after 5 seconds at the latest (RFC 7240). At most 30.", "wait=5"),
		"PreferSession", header("Prefer", "`return=representation`: the reply has the token of the session, and its user (RFC 7240). `wait=5`: reply once arrays have followed.", "return=representation"),
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
		"X-Request-Id", header("The request's id: in the log, in problems, and in the events that the request causes.", ""),
		"Etag", header("What the reply is a state of: an object's revision, with a hash of what was received where others, or other requests, see something else; a file's hash.", `^"[^"]*"$`),
		"Last-Modified", optional("When the file was uploaded."),
		"Cache-Control", header("Whether the reply may be kept.", ""),
		"Pragma", optional("no-cache, as RFC 6749 asks for."),
		"X-Accel-Buffering", optional("no: a proxy passes each event on at once."),
		"Location", header("Where it is.", ""),
		"Preference-Applied", optional("`wait`: all that the write caused has been applied. `return=representation`: the reply has what the request led to."),
		"Idempotency-Replayed", ordered.Of("description", "The reply is that of an earlier request with the same Idempotency-Key.", "schema", ordered.Of("type", "string", "const", "true")),
		"Link", optional(`The next page, with rel="next", and the page before, with rel="prev".`),
		"Help", optional(`A page about this type of problem, with rel="help", where the console is served.`),
		"Accept-Patch", header("What PATCH takes.", ""),
		"Accept-Encoding", optional("What encodings of a body are taken."),
		"Set-Cookie", optional("The session's cookie."),
		"Www-Authenticate", header("How to say who one is.", ""),
		"Insufficient-Scope", optional(`Bearer error="insufficient_scope"`+": where the rule of an API key does not allow the request (RFC 6750)."),
		"Retry-After", header("Seconds after which to try again.", `^[1-9][0-9]*$`),
		"Ratelimit", optional("What is left of limits that are more than half used up: r, within t seconds (draft-ietf-httpapi-ratelimit-headers-11). Other replies may have it too."),
		"Ratelimit-Policy", optional("These limits: q requests, or bytes, at once, and as many within w seconds. Other replies may have it too."),
		"Content-Disposition", header("Whether a browser shows the file or saves it, and under what name.", ""),
		"Content-Security-Policy", header("No script of a file runs.", ""),
		"Accept-Ranges", header("Parts can be had, in bytes.", "^bytes$"),
		"Content-Range", header("Which part it is, and of how many bytes.", "^bytes "),
		"Repr-Digest", header("The hash of the whole file (RFC 9530).", "^sha-256="),
		"Content-Length", header("Bytes of the file, or of its part.", "^[0-9]+$"),
	)
}
