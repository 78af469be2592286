package system

import (
	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
	"belfry/pkg/httpkit"
	"belfry/pkg/op"
)

// Operations adds the operations about belfry itself.
func Operations(set *op.Set, h Health, d Documents) {
	set.Component("Status", ordered.Of("type", "object", "description", "The state of the process.", "required", []string{"status"},
		"properties", ordered.Of(
			"status", op.Only("ok"),
			"degraded", ordered.Of("type", "array", "items", op.Text(""), "description", "The parts that do not work, for operators; only of `/readyz`."),
		)))
	set.Tag("System", "Health, metrics and documents.")
	status := ordered.Of("200", op.Reply("All is well.", op.JSON(apimodel.Ref("Status")), "Cache-Control"))
	probe := func(path, id, summary string, run httpkit.Handler) {
		set.Get(op.Operation{Path: path, ID: id, Summary: summary, Security: op.Open(), Replies: status, Run: run})
	}
	probe(livePath, "getLiveness", "Whether the process is alive, or needs a restart", h.live)
	probe(healthPath, "getHealth", "The same as /livez", h.live)
	probe(readyPath, "getReadiness", "Whether requests can be served", h.ready)
	if set.Contract.Routes.OpenAPI {
		document(set, "/openapi.json", "getOpenAPI", "This document", d.OpenAPI)
	}
	if set.Contract.Routes.AsyncAPI {
		document(set, "/asyncapi.json", "getAsyncAPI", "The interface on the bus, as an AsyncAPI document", d.AsyncAPI)
	}
}
