package objects

import (
	"net/http"

	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
	"belfry/pkg/httpkit"
	"belfry/pkg/op"
	"belfry/pkg/wire"
)

// addBatch adds the operation of batches.
func addBatch(set *op.Set, all *Resources) {
	set.Component("Batch", batchRequest())
	set.Component("BatchResults", batchResults())
	set.Tag("Batches", "Several operations in one request.")
	set.Add(op.Operation{
		Method: http.MethodPost, Path: "/batch", ID: "batch", Summary: "Execute several operations",
		Description: "Operations are executed in order, each as if it had been requested alone. A failed operation " +
			"does not stop the others, and there is no transaction over several objects.",
		Parameters: op.Parameters("Prefer"),
		Body:       op.Body(op.JSON(apimodel.Ref("Batch"))),
		Replies: ordered.Of("200", op.Reply("A result for each operation, in order.",
			op.JSON(apimodel.Ref("BatchResults")), "Cache-Control", "Preference-Applied")),
		Problems: []int{400, 401, 403, 408, 413, 415, 429},
		Limit:    httpkit.Write, Run: all.batch,
	})
}

// batchRequest is the body of a batch.
func batchRequest() *ordered.Object {
	headers := ordered.Of("type", "object", "description", "The headers of the operation. Names are case-insensitive.",
		"additionalProperties", false, "properties", ordered.Of(
			"If-Match", op.Text("As in a request."), "If-None-Match", op.Text("As in a request."), wire.HeaderKey,
			op.Text("As in a request.")))
	one := ordered.Of("type", "object", "required", []string{"method", "path"}, "additionalProperties", false,
		"properties", ordered.Of(
			"method", op.OneOf([]any{"POST", "GET", "PUT", "PATCH", "DELETE"}, ""),
			"path", op.Text("The path of a store for POST, or of an object for the other methods."),
			"headers", headers,
			"body", op.Free("The body of POST, PUT and PATCH. PATCH merges (RFC 7396)."),
		))
	return ordered.Of("type", "object", "description", "Operations to execute.", "required", []string{"operations"},
		"additionalProperties", false, "properties", ordered.Of(
			"operations", ordered.Of("type", "array", "minItems", 1, "maxItems", maxOperations, "items", one),
			"atomic", ordered.Of("type", "boolean", "const", false, "description",
				"There are no transactions over several objects."),
		))
}

// batchResults is the reply to a batch.
func batchResults() *ordered.Object {
	result := ordered.Of("type", "object", "required", []string{"status"}, "properties", ordered.Of(
		"status", ordered.Of("type", "integer", "description", "The status of the operation."),
		"headers", ordered.Of("type", "object", "description",
			"ETag, Location, Idempotency-Replayed and Retry-After, if the reply to a single request would have them.",
			"additionalProperties", op.Text("")),
		"body", op.Free("The object; a Problem if the status is 400 or above."),
	))
	return ordered.Of("type", "object", "description", "The result of each operation.", "required", []string{"results"},
		"properties", ordered.Of(
			"results", ordered.Of("type", "array", "items", result)))
}
