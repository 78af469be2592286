package openapi

import (
	"belfry/internal/ordered"
	"belfry/pkg/apidoc/model"
	"belfry/pkg/wire"
)

// maxOperations is how many operations a batch can have.
const maxOperations = 100

// batch adds the route of batches, which is there when a store is exposed.
func (d *document) batch() {
	for _, s := range d.contract.Stores {
		if s.Expose == nil {
			continue
		}
		d.tag("Batches", "Several operations in one request.")
		d.add(operation{
			method: "post", path: "/batch", tag: "Batches", id: "batch", summary: "Execute several operations",
			description: "Each is judged and answered as if it had been requested alone, one after the other. One that fails does not stop the others, and there is no transaction over several objects.",
			parameters:  parameters("Prefer"),
			body:        body(asJSON(model.Ref("Batch"))),
			replies:     ordered.Of("200", reply("A result for each operation, in order.", asJSON(model.Ref("BatchResults")), "Cache-Control", "Preference-Applied")),
			problems:    []int{400, 401, 403, 408, 413, 415, 429, 500, 503},
		})
		return
	}
}

func (d *document) batchRequest() *ordered.Object {
	text := func(description string) *ordered.Object {
		return ordered.Of("type", "string", "description", description)
	}
	headers := ordered.Of("type", "object", "description", "Those of the operation. Names are case-insensitive.", "additionalProperties", false, "properties", ordered.Of(
		"If-Match", text("As in a request."), "If-None-Match", text("As in a request."), wire.HeaderKey, text("As in a request.")))
	one := ordered.Of("type", "object", "required", []string{"method", "path"}, "additionalProperties", false, "properties", ordered.Of(
		"method", ordered.Of("type", "string", "enum", []any{"POST", "GET", "PUT", "PATCH", "DELETE"}),
		"path", text("That of a store for POST, and of an object for the other methods."),
		"headers", headers,
		"body", free("Of POST, PUT and PATCH. PATCH merges (RFC 7396)."),
	))
	return ordered.Of("type", "object", "description", "Operations to execute.", "required", []string{"operations"}, "additionalProperties", false, "properties", ordered.Of(
		"operations", ordered.Of("type", "array", "minItems", 1, "maxItems", maxOperations, "items", one),
		"atomic", ordered.Of("type", "boolean", "const", false, "description", "There are no transactions over several objects."),
	))
}

func batchResults() *ordered.Object {
	result := ordered.Of("type", "object", "required", []string{"status"}, "properties", ordered.Of(
		"status", ordered.Of("type", "integer", "description", "That of the operation alone."),
		"headers", ordered.Of("type", "object", "description", "ETag, Location, Idempotency-Replayed, Retry-After, where the reply to the operation alone has them.",
			"additionalProperties", ordered.Of("type", "string")),
		"body", free("The object; with a status of 400 and above a Problem."),
	))
	return ordered.Of("type", "object", "description", "What each operation led to.", "required", []string{"results"}, "properties", ordered.Of(
		"results", ordered.Of("type", "array", "items", result)))
}
