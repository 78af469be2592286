package system

import (
	"sync"

	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
	"belfry/pkg/httpkit"
	"belfry/pkg/op"
)

// Documents are the JSON documents about the API. They stay the same while the process runs, and are created at the
// first request.
type Documents struct {
	OpenAPI, AsyncAPI func() ([]byte, error)
}

// document adds the route of a document.
func document(set *op.Set, path, id, summary string, body func() ([]byte, error)) {
	set.Get(op.Operation{
		Path: path, ID: id, Summary: summary, Security: op.Open(),
		Parameters: op.Parameters("IfNoneMatch"),
		Replies: ordered.Of(
			"200", op.Reply("The document.", op.JSON(op.Free("The document.")), "Etag", "Cache-Control"),
			"304", op.Reply("The client's copy is current.", nil, "Etag", "Cache-Control"),
		),
		Problems: []int{400},
		Run:      send(body),
	})
}

// send replies with a document.
func send(body func() ([]byte, error)) httpkit.Handler {
	fixed := sync.OnceValues(func() (httpkit.Handler, error) {
		content, err := body()
		if err != nil {
			return nil, err
		}
		return httpkit.Fixed(httpkit.JSON, content), nil
	})
	return func(x *httpkit.Exchange) error {
		h, err := fixed()
		if err != nil {
			return err
		}
		return h(x)
	}
}

// Operations adds the operations about belfry itself.
func Operations(set *op.Set, h Health, d Documents) {
	set.Component("Status",
		ordered.Of("type", "object", "description", "The state of the process.", "required", []string{"status"},
			"properties", ordered.Of(
				"status", op.Only("ok"),
				"degraded", ordered.Of("type", "array", "items", op.Text(""), "description",
					"The parts that do not work, for operators; only of `/readyz`."),
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
